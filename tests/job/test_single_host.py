"""What a launcher on one host is told; tests/end_to_end/test_listening.py looks at its sockets."""

from __future__ import annotations

from dba3c.job.single_host import SETTINGS, single_host


def test_what_the_user_has_set_stays() -> None:
    assert single_host({"A": "1"}) == {"A": "1"} | SETTINGS
    assert single_host({"OMPI_MCA_btl": "self,tcp"}) == {"OMPI_MCA_btl": "self,tcp"}
