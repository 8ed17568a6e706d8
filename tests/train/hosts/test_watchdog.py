"""The watchdog: it lets slow steps be, and calls out where none ends."""

import threading

from angd.train.hosts.watchdog import FIRST, LEAST, TIMES, Watchdog


class Time:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def made(limit=None):
    said, time = [], Time()
    return Watchdog(said.append, limit, time), said, time


def pass_by(dog, time, seconds, step=1.0):
    end = time.now + seconds
    while time.now < end:
        time.now += step
        dog.look()


def test_a_run_whose_steps_end_is_left_alone():
    dog, said, time = made()
    pass_by(dog, time, FIRST - 1)  # compilation
    for _ in range(5):
        dog.beat()
        pass_by(dog, time, LEAST - 1)
    assert said == []


def test_a_step_may_take_ten_times_the_slowest_so_far():
    dog, said, time = made()
    pass_by(dog, time, 40.0)
    dog.beat()
    dog.beat()
    pass_by(dog, time, TIMES * 40 - 1)
    assert said == []
    pass_by(dog, time, 3)
    assert said[0] > TIMES * 40


def test_an_own_limit_counts_from_the_first_step():
    dog, said, time = made(5.0)
    pass_by(dog, time, 60.0)
    assert said == []
    dog.beat()
    pass_by(dog, time, 4.0, 0.5)
    assert said == []
    pass_by(dog, time, 2.0, 0.5)
    assert said


def test_time_in_which_the_process_itself_was_stopped_does_not_count():
    dog, said, time = made(60.0)
    dog.beat()
    pass_by(dog, time, 30.0)
    time.now += 1000.0
    dog.look()
    assert said == []
    pass_by(dog, time, 62.0)
    assert said


def test_it_looks_by_itself_while_it_is_entered():
    late = threading.Event()
    with Watchdog(lambda seconds: late.set(), 0.05) as dog:
        dog.beat()
        assert late.wait(30)
