"""The palace and its clock, as the services' tests have them."""

from __future__ import annotations

from tests.services.conftest import clock as clock
from tests.services.conftest import open_palace as open_palace
from tests.services.conftest import palace as palace
