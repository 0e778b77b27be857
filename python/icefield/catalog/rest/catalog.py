"""The catalog of a server that speaks the REST protocol of Iceberg."""

from __future__ import annotations

from icefield._inputs.secrets import revealed
from icefield.catalog.rest.client import Client
from icefield.catalog.rest.protocol.endpoints import COMMIT_TRANSACTION, PLAN_SCAN
from icefield.catalog.rest.transactions import CatalogTransaction
from icefield.catalog.rest.views import RestViews

__all__ = ["RestCatalog"]


class RestCatalog(RestViews):
    """A catalog behind the REST protocol of Iceberg.

    Nothing is sent to the server before something is asked of the catalog.

    Parameters
    ----------
    name
        The name of the catalog, for messages.
    uri
        Where the server is: what comes before ``/v1``.
    warehouse
        Which of the server's warehouses or catalogs, as the server calls it.
    **properties
        ``credential`` or ``token``, ``auth.type``, ``header.*`` and the other properties of ``docs/catalogs.md``, and
        those of the storage.

    """

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        self._made = Client(revealed(self.properties))

    @property
    def _client(self) -> Client:
        return self._made

    @property
    def uri(self) -> str:
        """Where the server is, as the property says; the server may move the catalog elsewhere."""
        return self.properties["uri"]

    def supports_server_side_planning(self) -> bool:
        """Return whether the server plans scans: by ``scan-planning-mode``, if it has the route."""
        config = self._made.config
        mode = config.properties.get("scan-planning-mode", "client")
        return mode.lower() == "server" and config.endpoints.offer(PLAN_SCAN)

    def transaction(self) -> CatalogTransaction:
        """Start a transaction of several tables.

        Raises
        ------
        UnsupportedFeatureError
            If the server cannot commit changes of several tables at once.

        """
        self._made.config.endpoints.require(COMMIT_TRANSACTION, "changes of several tables in one commit")
        return CatalogTransaction(self)

    def close(self) -> None:
        """Close the connections to the server; the catalog opens new ones if it is used again."""
        if self._reports is not None:
            self._reports.finish()
        self._made.close()
