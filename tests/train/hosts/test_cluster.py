"""Which processes work together: what options and launchers say, and one sentence for what does not fit."""

import pytest

from angd.program.main import main
from angd.train.hosts.cluster import Cluster, check_patience, cluster_of, devices_of

SLURM = {"SLURM_JOB_ID": "77", "SLURM_STEP_NODELIST": "n[1-2]", "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3"}
MPI = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"}
URI = {"OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1:34911"}
HERE = "node1:6543"


@pytest.mark.parametrize(
    ("given", "environment", "found"),
    [
        ((None, None, None), {}, None),
        ((HERE, 2, 1), {}, Cluster(HERE, 2, 1)),
        ((HERE, 2, 1), SLURM, Cluster(HERE, 2, 1)),
        ((None, None, None), SLURM, Cluster(None, 4, 3)),
        ((HERE, None, None), SLURM, Cluster(HERE, 4, 3)),
        ((None, 1, None), SLURM, None),
        ((None, None, None), SLURM | {"SLURM_STEP_NUM_TASKS": "1"}, None),
        ((None, None, None), {"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}, None),
        ((None, None, None), MPI | URI, Cluster(None, 2, 1)),
        ((HERE, None, None), {"PMI_SIZE": "8", "PMI_RANK": "5"}, Cluster(HERE, 8, 5)),
        (("[::1]:80", 1, 0), {}, Cluster("[::1]:80", 1, 0)),
    ],
)
def test_options_and_launchers_say_who_works_together(given, environment, found):
    coordinator, processes, process = given
    assert cluster_of(coordinator, processes, process, environment) == found


@pytest.mark.parametrize(
    ("given", "environment", "words"),
    [
        ((HERE, None, None), {}, "give all three"),
        ((HERE, 2, None), {}, "give all three"),
        ((HERE, None, 0), SLURM, "give all three"),
        ((None, 2, 0), {}, "give all three"),
        ((None, None, 1), {}, "give all three"),
        ((None, 4, None), SLURM, "give all three"),
        ((HERE, 2, 2), {}, "must be from 0 to 1, got 2"),
        ((HERE, 2, -1), {}, "must be from 0 to 1, got -1"),
        ((HERE, 0, 0), {}, "--processes must be from 1 to 100000, got 0"),
        (("node1", 2, 0), {}, "--coordinator takes HOST:PORT"),
        (("node1:0", 2, 0), {}, "--coordinator takes HOST:PORT"),
        (("node1:70000", 2, 0), {}, "--coordinator takes HOST:PORT"),
        ((":80", 2, 0), {}, "--coordinator takes HOST:PORT"),
        ((None, None, None), MPI, "mpirun has started 2 processes, but does not say where"),
        ((None, None, None), {"PMI_SIZE": "8", "PMI_RANK": "5"}, "add --coordinator HOST:PORT"),
    ],
)
def test_what_does_not_fit_together_is_one_sentence(given, environment, words):
    coordinator, processes, process = given
    with pytest.raises(ValueError, match=words):
        cluster_of(coordinator, processes, process, environment)


def test_numbers_out_of_range_are_refused():
    assert [devices_of(text) for text in (None, "all", "3")] == [None, None, 3]
    for text in ("0", "-1", "two", "1.5", "1025", ""):
        with pytest.raises(ValueError, match="whole number from 1 to 1024, or all"):
            devices_of(text)
    for heartbeat, watchdog in ((1, None), (None, 0.5), (4000, None)):
        with pytest.raises(ValueError, match="must be from"):
            check_patience(heartbeat, watchdog)
    check_patience(30, 600.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--devices", "none"], "--devices must be a whole number"),
        (["--coordinator", "node1:80"], "belong together"),
        (["--coordinator", "node1:80", "--processes", "2", "--process", "2"], "counts from 0"),
        (["--heartbeat", "0"], "--heartbeat must be from 2 to 3600, got 0"),
        (["--coordinator", "a:1", "--processes", "2", "--process", "0", "--dry-run"], "--dry-run is for one process"),
    ],
)
def test_the_program_says_it_and_ends_with_two(options, words, capsys):
    assert main(["run", "heat", *options]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
