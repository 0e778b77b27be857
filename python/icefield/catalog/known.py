"""Properties of catalogs and their storage: those of Java, of PyIceberg and our own, and how each is treated.

A configuration may be shared with other libraries, so properties without effect here are ignored; those whose effect
would be missed, above all encryption, are refused. ``docs/properties.md`` is generated from this list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from icefield._core import nearest_name
from icefield.errors import InvalidArgumentError, UnsupportedFeatureError

__all__ = ["PROPERTIES", "CatalogProperty", "check", "is_catalog_property"]

#: The class of PyIceberg that has the server sign requests to S3.
REST_SIGNER = "S3V4RestSigner"

Effect = Literal["honoured", "harmless", "refused"]


class CatalogProperty(NamedTuple):
    """A property; a name that ends with a dot is followed by more."""

    name: str
    effect: Effect
    why: str = ""


_GROUPS: tuple[tuple[Effect, str, str], ...] = (
    (
        "honoured",
        "",
        """
        py-catalog-impl type uri warehouse io.manifest.cache-enabled unique-table-location table-default. view-default.
        view-override. init_catalog_tables schema_version jdbc.schema-version s3.endpoint s3.access-key-id
        s3.secret-access-key s3.session-token s3.region s3.role-arn s3.sse.type s3.sse.key s3.server-side-encryption
        s3.sse-kms-key-id s3.role-session-name s3.profile-name s3.resolve-region s3.anonymous
        s3.force-virtual-addressing s3.path-style-access s3.checksum-algorithm s3.requester-pays
        s3.connect-timeout s3.request-timeout s3.proxy-uri
        client.access-key-id client.secret-access-key client.session-token client.region client.role-arn
        client.role-session-name tls.verify gcs.service-account-key gcs.credentials-json gcs.service-account-path
        gcs.credential-path gcs.service.host
        gcs.endpoint gcs.no-auth gcs.allow-anonymous gcs.oauth2.token gcs.connect-timeout gcs.request-timeout
        gcs.proxy-uri adls.account-name adls.account-key adls.auth.shared-key.account.name
        adls.auth.shared-key.account.key adls.sas-token adls.sas-token. adls.tenant-id adls.client-id adls.client-secret
        adls.token adls.endpoint adls.connection-string adls.connect-timeout adls.request-timeout adls.proxy-uri
        http.connect-timeout http.request-timeout http.proxy-uri io.allowed-locations encryption.kms-impl
        encryption.kms-type encryption.kms.key-file kms.endpoint kms.encryption-algorithm-spec
        azure.keyvault.url azure.keyvault.key-wrap-algorithm metrics-reporter-impl
        """,
    ),
    (
        "honoured",
        "Of REST catalogs.",
        """
        token credential scope audience resource prefix oauth2-server-uri token-expires-in-ms token-refresh-enabled
        token-exchange-enabled auth.type auth.impl auth.basic.username auth.basic.password auth.oauth2.client_id
        auth.oauth2.client_secret auth.oauth2.token_url auth.oauth2.scope auth.custom. auth.google.credentials_path
        auth.google.scopes gcp.auth.credentials-path gcp.auth.scopes auth.entra. rest.auth.type
        rest.auth.basic.username rest.auth.basic.password rest.auth.sigv4.delegate-auth-type rest.sigv4-enabled
        rest.signing-region rest.signing-name rest.access-key-id rest.secret-access-key rest.session-token
        client.profile-name ssl.cabundle ssl.client.cert ssl.client.key header. rest-page-size namespace-separator
        rest-metrics-reporting-enabled snapshot-loading-mode view-endpoints-supported
        rest-table-cache.max-entries rest-table-cache.expire-after-write-ms s3.remote-signing-enabled
        s3.signer.uri s3.signer.endpoint signer.uri signer.endpoint rest.client.max-retries rest.client.max-connections
        rest.client.connection-timeout-ms rest.client.socket-timeout-ms rest.client.user-agent
        rest.client.executors-get-token
        rest.client.proxy.hostname rest.client.proxy.port rest.client.proxy.username rest.client.proxy.password
        """,
    ),
    (
        "honoured",
        "Of Glue and DynamoDB catalogs.",
        """
        glue.id glue.endpoint glue.region glue.profile-name glue.access-key-id glue.secret-access-key
        glue.session-token glue.role-arn glue.role-session-name glue.max-retries glue.retry-mode glue.skip-archive
        glue.skip-name-validation dynamodb.table-name table-name dynamodb.endpoint dynamodb.region
        dynamodb.profile-name dynamodb.access-key-id dynamodb.secret-access-key dynamodb.session-token
        dynamodb.role-arn dynamodb.role-session-name dynamodb.max-retries dynamodb.retry-mode
        """,
    ),
    (
        "honoured",
        "Of Hive catalogs.",
        """
        hive.lock-enabled engine.hive.lock-enabled hive.hive2-compatible hive.kerberos-authentication
        hive.lock-timeout-ms hive.lock-heartbeat-interval-ms ugi lock-check-min-wait-time lock-check-max-wait-time
        lock-check-retries
        """,
    ),
    (
        "refused",
        "objects would be stored without the encryption that it asks for",
        """
        s3.sse.md5 gcs.encryption-key
        gcs.decryption-key
        """,
    ),
    (
        "refused",
        "objects would be stored without this access rule",
        """
        s3.acl
        """,
    ),
    (
        "honoured",
        "Of REST catalogs, where `S3V4RestSigner` means s3.remote-signing-enabled; anything else is refused.",
        """
        s3.signer
        """,
    ),
    (
        "refused",
        "credentials of Lake Formation are not asked for",
        """
        glue.lakeformation-enabled
        """,
    ),
    (
        "refused",
        "properties of tables are not overridden by the catalog",
        """
        table-override.
        """,
    ),
    (
        "refused",
        "its name has underscores",
        """
        init-catalog-tables schema-version
        """,
    ),
    (
        "refused",
        "it names a Java class",
        """
        catalog-impl
        """,
    ),
    (
        "harmless",
        "Files are reached by icefield's own storage, by the scheme of their location.",
        """
        io-impl py-io-impl
        """,
    ),
    (
        "harmless",
        "The catalog is asked each time.",
        """
        cache-enabled cache.case-sensitive cache.expiration-interval-ms
        """,
    ),
    (
        "harmless",
        "Manifests are kept in memory, bounded, by icefield's own rule.",
        """
        io.manifest.cache.
        """,
    ),
    (
        "harmless",
        "Read by the Java library only.",
        """
        clients client.pool.cache.eviction-interval-ms app-id app-name user
        client-pool-cache-keys lock-impl lock. auth.session-timeout-ms client.factory http-client.
        client.credentials-provider client.credentials-provider. client.assume-role.
        client.refresh-credentials-enabled client.refresh-credentials-endpoint jdbc.
        client.legacy-md5-plugin-enabled kms. lakeformation. azure.
        """,
    ),
    (
        "harmless",
        "Read by PyIceberg only.",
        """
        s3.retry-strategy-impl echo pool_pre_ping
        botocore_session hdfs. hf.
        """,
    ),
    (
        "harmless",
        "icefield's own storage has no such setting.",
        """
        s3.retry. s3.multipart. s3.delete. s3.delete-enabled s3.staging-dir s3.checksum-enabled s3.crt.
        s3.analytics-accelerator. s3.preload-client-enabled s3.client-factory-impl s3.chunked-encoding-enabled
        s3.acceleration-enabled s3.dualstack-enabled s3.cross-region-access-enabled s3.use-arn-region-enabled
        s3.access-points. s3.access-grants. s3.directory-bucket.list-prefix-as-directory gcs.project-id
        gcs.user-project gcs.access gcs.consistency gcs.cache-timeout gcs.requester-pays gcs.session-kwargs
        gcs.default-bucket-location gcs.version-aware gcs.channel. gcs.delete.batch-size gcs.analytics-core.enabled
        gcs.client-lib-token gcs.impersonate. gcs.oauth2.refresh-credentials-enabled
        gcs.oauth2.refresh-credentials-endpoint adls.credential adls.account-host adls.blob-storage-authority
        adls.dfs-storage-authority adls.blob-storage-scheme adls.dfs-storage-scheme adls.anon
        adls.connection-string. adls.read.block-size-bytes adls.write.block-size-bytes
        adls.token-credential-provider adls.token-credential-provider. adls.refresh-credentials-enabled
        adls.refresh-credentials-endpoint
        """,
    ),
    (
        "harmless",
        "Objects are stored without it.",
        """
        s3.write.tags. s3.write.storage-class s3.write.table-tag-enabled s3.write.namespace-tag-enabled
        """,
    ),
    (
        "harmless",
        "The time when a credential expires is the server's to say.",
        """
        s3.session-token-expires-at-ms gcs.oauth2.token-expires-at adls.sas-token-expires-at-ms.
        """,
    ),
    (
        "honoured",
        "Of REST catalogs: `client` or `server`.",
        """
        scan-planning-mode
        """,
    ),
    (
        "harmless",
        "For catalogs of other kinds.",
        """
        ssl. auth. auth rest. rest-scan-planning. rest-table-cache. signer. hive.kerberos-service-name
        list-all-tables gcp.bigquery.
        """,
    ),
)

#: All known properties.
PROPERTIES = tuple(CatalogProperty(name, effect, why) for effect, why, names in _GROUPS for name in names.split())

_NAMES = frozenset(known.name for known in PROPERTIES if not known.name.endswith("."))
_PREFIXES = tuple(known.name for known in PROPERTIES if known.name.endswith("."))
#: Prefixes of storage properties, including unknown ones.
_STORAGE = ("s3.", "gcs.", "adls.", "client.", "http.", "glue.", "dynamodb.", "hive.")


#: Names whose effect is missed if they are misspelt; those that begin longer ones end with a dot.
_HONOURED = tuple(known.name for known in PROPERTIES if known.effect == "honoured")


def _meant(name: str) -> str | None:
    """Return the known name that another was probably meant to be.

    Long names may differ by two letters. Of short ones, those that have an effect are one slip away: a letter that is
    missing, doubled, wrong, or swapped with its neighbour.
    """
    if nearest := nearest_name(name, [*_NAMES, *(known for known in _HONOURED if known.endswith("."))]):
        return nearest
    short = name.lower()
    return next((known for known in _HONOURED if known in _NAMES and _is_one_slip(short, known)), None)


def _is_one_slip(given: str, known: str) -> bool:
    if abs(len(given) - len(known)) > 1:
        return False
    same = next((at for at, (one, other) in enumerate(zip(given, known, strict=False)) if one != other), len(known))
    rest, wanted = given[same:], known[same:]
    swapped = rest[:2] == wanted[1::-1] and rest[2:] == wanted[2:]
    return swapped or rest[1:] == wanted or rest == wanted[1:] or rest[1:] == wanted[1:]


def is_catalog_property(name: str) -> bool:
    """Return whether a name is a property of catalogs or their storage."""
    return name in _NAMES or name.startswith((*_PREFIXES, *_STORAGE))


def _find(name: str) -> CatalogProperty | None:
    fitting = (one for one in PROPERTIES if name == one.name or (one.name.endswith(".") and name.startswith(one.name)))
    return max(fitting, key=lambda known: len(known.name), default=None)


def check(properties: Mapping[str, str], kind: str) -> None:
    """Refuse properties that a catalog of a kind cannot honour, and names close to known ones.

    Raises
    ------
    InvalidArgumentError, UnsupportedFeatureError
        It names the property and why.

    """
    for name in properties:
        known = _find(name)
        if known is None and (nearest := _meant(name)):
            raise InvalidArgumentError(f"unknown catalog property {name}; did you mean {nearest}?")
        if known is not None and known.effect == "refused":
            raise UnsupportedFeatureError(f"catalog property {name}: {known.why}")
    signer = properties.get("s3.signer", REST_SIGNER)
    if signer != REST_SIGNER or ("s3.signer" in properties and kind != "rest"):
        raise UnsupportedFeatureError(
            f"catalog property s3.signer={signer}: only {REST_SIGNER} of REST catalogs is supported, whose servers "
            "sign requests"
        )
