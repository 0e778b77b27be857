"""Keys of encrypted tables: clients of key management services.

A table with the property ``encryption.key-id`` is encrypted: every file of it by a key of its own, and these keys, by
way of others, by the key that the property names. That key never leaves its service; a client of the service asks it
to encrypt and decrypt keys. A catalog gets its client by the property ``encryption.kms-type`` or
``encryption.kms-impl``, or as an object (`icefield.catalog.Catalog.key_management`).
"""

from icefield.encryption.aws import AwsKeys
from icefield.encryption.azure import AzureKeys
from icefield.encryption.client import KeyManagementClient
from icefield.encryption.gcp import GcpKeys
from icefield.encryption.local import KeyFile, MemoryKeys

__all__ = ["AwsKeys", "AzureKeys", "GcpKeys", "KeyFile", "KeyManagementClient", "MemoryKeys"]
