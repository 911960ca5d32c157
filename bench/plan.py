"""What run.py measures: workloads, contenders, sizes; what is compared with what; the targets."""

from dataclasses import dataclass, field

# contender: the program that has it
TIMERS = {"steady": "timers_steady", "wheel": "timers_wheel", "wheel_wait": "timers_wheel",
          "steady_coroutine": "timers_steady", "wheel_coroutine": "timers_wheel", "libev": "timers_libev",
          "clocked": "timers_nothing"}
# A ratio compares like with like: coroutines with coroutines.
REFERENCE = {"wheel_coroutine": "steady_coroutine"}

# The wheel with other options than its defaults.
WAITS = {f"wheel_wait_{shards}": ("wheel_wait", ["--shards", shards]) for shards in (1, 64)}
DEADLINES = {name: "deadlines" for name in ("none", "clock", "cancel_after", "cancel_after_coarse", "steady_timer",
                                            "cancel_after_awaited", "awaitable_or")}
ALIVE = {name: "alive" for name in ("clock", "clock_coarse", "store", "store_coarse", "watchdog", "watchdog_coarse")}
HTTP = {name: "http_costs" for name in ("raw", "beast", "beast_30", "wheel", "wheel_30", "lazy_30")}
SUITES = {"timers": TIMERS, "options": {name: "timers_wheel" for name in WAITS}, "deadlines": DEADLINES, "alive": ALIVE,
          "http": HTTP}

# A contender that is another one with an option.
VARIANTS = {f"{name}_coarse": (name, ["--clock", "coarse"]) for name in ("cancel_after", "clock", "store", "watchdog")}
VARIANTS |= WAITS


def program_contender(contender):
    """What the program calls it, and the options that make it this one."""
    return VARIANTS.get(contender, (contender, []))


@dataclass
class Workload:
    suite: str  # of SUITES
    name: str
    title: str
    metric: str  # the one that is compared
    unit: str
    sizes: list
    more: dict = field(default_factory=dict)  # further metrics in the table: name -> unit
    higher_is_better: bool = False
    contenders: list = None  # None: all that have the workload
    reference: str = "steady"
    steps: int = 2_000_000
    seconds: dict = field(default_factory=dict)  # how long to measure at this size, if not as long as usual

    @property
    def programs(self):
        return SUITES[self.suite]

    def reference_of(self, contender):
        return REFERENCE.get(contender, self.reference) if self.suite == "timers" else self.reference


E1, E2, E3, E4, E5, E6 = 10, 100, 1_000, 10_000, 100_000, 1_000_000
ALL = [E3, E4, E5, E6]
LATE = {"late_p50_us": "µs late p50", "late_p99_us": "p99", "late_max_us": "max", "early": "early"}

WORKLOADS = [
    Workload("timers", "start", "Start: CPU ns per wait", "cpu_ns", "ns", ALL),
    Workload("timers", "churn", "Churn, delays 1-60 s: CPU ns per step", "cpu_ns", "ns", ALL),
    Workload("timers", "parallel1", "Churn, one thread: million steps/s", "msteps_per_s", "M/s", [E4, E5, E6],
             {"cpu_ns": "ns CPU"}, higher_is_better=True),
    Workload("timers", "parallel2", "Churn, two threads on one io_context: million steps/s in all", "msteps_per_s",
             "M/s", [E4, E5, E6], {"cpu_ns": "ns CPU"}, higher_is_better=True),
    Workload("timers", "expire", "Expire, uniform over 1 s: CPU ns per wait", "cpu_ns", "ns", ALL, LATE),
    Workload("timers", "rearm", "Re-arming by 1 ms to 1 s: CPU ns per fire", "cpu_ns", "ns", [1, E1, E2, E3], LATE,
             contenders=["steady", "wheel"], seconds={1: 30, E1: 15, E2: 8, E3: 5}),
    Workload("timers", "memory", "Memory: bytes per pending wait", "bytes", "B", [E5, E6]),
    Workload("options", "shards", "Expire, uniform over 1 s, started by a thread for each shard: CPU ns per wait", "cpu_ns", "ns",
             [E6], LATE, reference="wheel_wait_1"),
    Workload("deadlines", "post", "An operation that completes by one post: CPU ns", "cpu_ns", "ns", [1, 64, E3],
             reference="none"),
    Workload("alive", "touch", "A sign of life of a random connection: CPU ns", "cold_ns", "ns", [E5],
             reference="clock"),
    Workload("http", "keep_alive", "HTTP request of a connection that is kept alive: the server's CPU ns", "cpu_ns", "ns",
             [1, E3], {"wall_ns": "ns wall"}, reference="raw", steps=200_000),
]


@dataclass
class Target:
    """`what` of (suite, workload, contender, n) must be at least or at most `bound`.

    what: a metric's name; or ("against", contender): the ratio to that contender, above one if it is beaten; or
    ("of", workload, contender, n): how many times that cell's cost this one is; or
    ("added", base, unit): by how much it costs more than contender `base`, counted in what contender `unit` costs.

    floor: the contender that does the least that this takes, whose figure in the place of the other is shown beside it.
    """
    text: str
    suite: str
    workload: str
    contender: str
    n: int
    what: object
    bound: float
    at_least: bool = False
    floor: str = None


def at_least(text, workload, contender, n, against, bound, floor=None):
    return Target(text, "timers", workload, contender, n, ("against", against), bound, at_least=True, floor=floor)


def at_most(text, workload, contender, n, what, bound, suite="timers", floor=None):
    return Target(text, suite, workload, contender, n, what, bound, floor=floor)


TARGETS = [
    at_least("churn at 1e3, against steady_timer", "churn", "wheel", E3, "steady", 2.5, "clocked"),
    at_least("churn at 1e4", "churn", "wheel", E4, "steady", 3, "clocked"),
    at_least("churn at 1e5", "churn", "wheel", E5, "steady", 5, "clocked"),
    at_least("churn at 1e6", "churn", "wheel", E6, "steady", 4, "clocked"),
    at_least("start-all at 1e6", "start", "wheel", E6, "steady", 4, "clocked"),
    at_least("churn, coroutine per timer, at 1e5", "churn", "wheel_coroutine", E5, "steady_coroutine", 2.5),
    at_least("churn at 1e6, against libev", "churn", "wheel", E6, "libev", 1, "clocked"),
    at_least("expire over 1 s at 1e5", "expire", "wheel", E5, "steady", 20),
    at_least("expire over 1 s at 1e6", "expire", "wheel", E6, "steady", 10),
    *[at_most(f"re-arming by 1 ms to 1 s, {n:,} timer{'s' if n > 1 else ''}, to steady_timer", "rearm", "wheel", n,
              ("of", "rearm", "steady", n), 1.05 if n < E2 else 1) for n in (1, E1, E2, E3)],
    at_most("1e6 expire over 1 s, 64 shards to 1", "shards", "wheel_wait_64", E6, ("of", "shards", "wheel_wait_1", E6), 1.3, "options"),
    at_least("two threads at 1e4", "parallel2", "wheel", E4, "steady", 4, "clocked"),
    at_least("two threads at 1e5", "parallel2", "wheel", E5, "steady", 4, "clocked"),
    *[Target(text, "timers", "parallel2", "wheel", n, ("of", "parallel1", "wheel", n), 1, at_least=True, floor="clocked")
      for text, n in (("two threads' steps/s to one thread's of the wheel, at 1e4", E4), ("the same at 1e5", E5))],
    at_most("bytes per pending async_wait", "memory", "wheel_wait", E6, "bytes", 120),
    *[at_most(f"cancel_after on an operation, {n} under way{clock}: clock reads added", "post", contender, n,
              ("added", "none", "clock"), bound, "deadlines")
      for contender, clock, bound in (("cancel_after", "", 2), ("cancel_after_coarse", ", coarse clock", 1))
      for n in (1, 64)],
    at_most("touch() at 1e5, in clock reads", "touch", "watchdog", E5, ("of", "touch", "clock", E5), 1.5, "alive", "store"),
    at_most("touch() at 1e5 with the coarse clock, ns", "touch", "watchdog_coarse", E5, "cold_ns", 10, "alive", "store_coarse"),
]
