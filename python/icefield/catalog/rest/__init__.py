"""The catalog of a server that speaks the REST protocol of Iceberg (``pip install 'icefield[rest]'``)."""

from __future__ import annotations

from icefield.catalog.rest.catalog import RestCatalog
from icefield.catalog.rest.protocol.auth import Auth
from icefield.catalog.rest.transactions import CatalogTransaction

__all__ = ["Auth", "CatalogTransaction", "RestCatalog"]
