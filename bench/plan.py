"""What run.py measures: workloads, contenders, sizes; what is compared with what; the targets."""

from dataclasses import dataclass, field

TIMERS = {  # contender: the program that has it
    "steady": "timers_steady",
    "wheel": "timers_wheel",
    "steady_typed": "timers_steady",
    "wheel_typed": "timers_wheel",
    "wheel_wait": "timers_wheel",
    "wheel_slot": "timers_wheel",
    "steady_coroutine": "timers_steady",
    "wheel_coroutine": "timers_wheel",
    "steady_deferred": "timers_steady",
    "wheel_deferred": "timers_wheel",
    "libuv": "timers_libuv",
    "libevent": "timers_libevent",
    "libevent_common": "timers_libevent",
    "libev": "timers_libev",
    "nothing": "timers_nothing",
    "nothing_coroutine": "timers_nothing",
    "nothing_deferred": "timers_nothing",
    "clocked": "timers_nothing",
    "clocked_coroutine": "timers_nothing",
    "ticks": "timers_nothing",
}
# A ratio compares like with like: coroutines with coroutines, the typed executor with the typed executor.
REFERENCE = {"wheel_typed": "steady_typed", "wheel_coroutine": "steady_coroutine", "wheel_deferred": "steady_deferred",
             "nothing_coroutine": "steady_coroutine", "nothing_deferred": "steady_deferred",
             "clocked_coroutine": "steady_coroutine"}

# The wheel with other options than its defaults.
WAITS = {f"wheel_wait_{shards}": ("wheel_wait", ["--shards", shards]) for shards in (1, 16, 64)}
OPTIONS = {"steady": "timers_steady",
           **{name: "timers_wheel" for name in ("wheel", *WAITS)}}
ALONE = {name: "wheel_alone" for name in ("wheel", "multimap", "d_ary_heap", "pairing", "floor", "floor_list")}
DEADLINES = {name: "deadlines" for name in ("none", "clock", "cancel_after", "cancel_after_coarse", "steady_timer", "lazy",
                                            "floor", "floor_coarse", "none_awaited", "cancel_after_awaited", "awaitable_or")}
ALIVE = {name: "alive" for name in ("clock", "clock_coarse", "store", "store_coarse", "watchdog", "watchdog_coarse",
                                    "heartbeat", "heartbeat_coarse", "lazy", "ticks", "steady", "steady_typed")}
SCHEDULER = {name: "scheduler_costs" for name in ("string", "integer", "string_map", "integer_map")}
HTTP = {name: "http_costs" for name in ("raw", "beast", "beast_30", "wheel", "wheel_30", "lazy_30")}
SUITES = {"timers": TIMERS, "options": OPTIONS, "alone": ALONE, "deadlines": DEADLINES, "alive": ALIVE,
          "scheduler": SCHEDULER, "http": HTTP}

# A contender that is another one with an option.
VARIANTS = {f"{name}_coarse": (name, ["--clock", "coarse"])
            for name in ("cancel_after", "floor", "clock", "store", "watchdog", "heartbeat")}
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
    large: list = field(default_factory=list)  # who runs at ten million, too
    steps: int = 2_000_000
    seconds: dict = field(default_factory=dict)  # how long to measure at this size, if not as long as usual

    @property
    def programs(self):
        return SUITES[self.suite]

    def reference_of(self, contender):
        return REFERENCE.get(contender, self.reference) if self.suite == "timers" else self.reference


E1, E2, E3, E4, E5, E6, E7 = 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000
ALL = [E3, E4, E5, E6]
LATE = {"late_p50_us": "µs late p50", "late_p99_us": "p99", "late_max_us": "max", "early": "early"}
SERVICE = ["wheel", "wheel_wait", "wheel_slot"]

WORKLOADS = [
    Workload("timers", "start", "Start: CPU ns per wait", "cpu_ns", "ns", ALL, large=SERVICE),
    Workload("timers", "churn", "Churn, delays 1-60 s: CPU ns per step", "cpu_ns", "ns", ALL, large=SERVICE),
    Workload("timers", "churn_fixed", "Churn, all delays 5 s: CPU ns per step", "cpu_ns", "ns", ALL),
    Workload("timers", "churn_far", "Churn, delays 60-120 s, so that none expires: CPU ns per step", "cpu_ns", "ns", [E6],
             contenders=["steady", *SERVICE, "nothing"], large=[*SERVICE, "nothing"]),
    Workload("timers", "churn_expiry", "The same while one timer expires each ms: CPU ns per step", "cpu_ns", "ns", [E6],
             {"expired": "expired"}, contenders=["steady", "wheel"]),
    Workload("timers", "parallel1", "Churn, one thread: million steps/s", "msteps_per_s", "M/s", [E4, E5, E6],
             {"cpu_ns": "ns CPU"}, higher_is_better=True),
    Workload("timers", "parallel2", "Churn, two threads on one io_context: million steps/s in all", "msteps_per_s",
             "M/s", [E4, E5, E6], {"cpu_ns": "ns CPU"}, higher_is_better=True),
    Workload("timers", "expire", "Expire, uniform over 1 s: CPU ns per wait", "cpu_ns", "ns", ALL, LATE, large=["wheel_wait"]),
    Workload("timers", "overdue", "All due when the loop gets to look: CPU ns per wait", "cpu_ns", "ns", ALL, {"early": "early"}),
    Workload("timers", "burst", "One deadline for all: CPU ns per wait", "cpu_ns", "ns", ALL, LATE),
    Workload("timers", "heartbeat", "Heartbeats of 1 s: CPU ns per fire", "cpu_ns", "ns", [E3, E4, E5], LATE),
    Workload("timers", "rearm", "Re-arming by 1 ms to 1 s: CPU ns per fire", "cpu_ns", "ns", [1, E1, E2, E3], LATE,
             contenders=["steady", "wheel", "ticks"], seconds={1: 30, E1: 15, E2: 8, E3: 5}),
    Workload("timers", "stall", "Longest stall of the loop while waits expire: µs", "stall_us", "µs", ALL,
             {"stall_wall_us": "µs wall"}),
    Workload("timers", "memory", "Memory: bytes per pending wait", "bytes", "B", [E5, E6], large=SERVICE),
    Workload("timers", "idle", "Idle: wake-ups in the time given", "wakeups", "", [1, E5], {"cpu_us": "µs CPU"},
             contenders=["steady", "wheel", "wheel_wait", "libuv", "libevent", "libev"], seconds={1: 5, E5: 5}),
    Workload("options", "shards", "Expire, uniform over 1 s, started by a thread for each shard: CPU ns per wait", "cpu_ns", "ns",
             [E6], LATE, contenders=["steady", *WAITS]),
    Workload("options", "contexts", "Contexts with a timer each: MB", "megabytes", "MB", [64], {"unused_kb": "KB each before that"},
             contenders=["steady", "wheel_wait_64"]),
    Workload("options", "first_start", "Longest single start: CPU µs", "longest_us", "µs", [E6],
             contenders=["steady", "wheel"]),
    Workload("alone", "insert", "Wheel alone, insert: ns per entry", "cpu_ns", "ns", [E5, E6], reference="multimap", large=["wheel"]),
    Workload("alone", "churn", "Wheel alone, churn: ns per step", "cpu_ns", "ns", [E5, E6], {"expired": "expired"},
             reference="multimap", large=["wheel", "floor"]),
    Workload("alone", "expire", "Wheel alone, expire all: ns per entry", "cpu_ns", "ns", [E5, E6],
             reference="multimap", large=["wheel", "floor", "floor_list"]),
    Workload("alone", "worst", "Wheel alone, longest advance: µs", "worst_us", "µs", [E5, E6],
             {"due_in_it": "due in it", "beyond_due_us": "µs beyond the due"}, reference="multimap", large=["wheel"]),
    *[Workload("alone", f"worst_{where}", f"Wheel alone, longest advance by itself, {what}: µs", "advance_us", "µs", [E6],
               contenders=["wheel"], reference="wheel")
      for where, what in (("far", "due in 300-360 s"), ("slot", "due within 256 ticks"), ("tick", "all on one tick"))],
    Workload("alone", "empty", "Wheel alone, advance an empty one: ns", "cpu_ns", "ns", [1], reference="multimap"),
    Workload("alone", "jump", "Wheel alone, jump over an hour of nothing: ns", "cpu_ns", "ns", [1], reference="multimap"),
    Workload("deadlines", "post", "An operation that completes by one post: CPU ns", "cpu_ns", "ns", [1, 64, E3],
             reference="none"),
    Workload("alive", "touch", "A sign of life of a random connection: CPU ns", "cold_ns", "ns", [E5],
             {"warm_ns": "ns in the cache"}),
    Workload("alive", "beats", "Heartbeats of 1 s: CPU ns per beat", "cpu_ns", "ns", [E4, E5]),
    *[Workload("scheduler", name, f"keyed_scheduler, {what}: CPU ns", "cpu_ns", "ns", [E6], more, reference="")
      for name, what, more in (("put", "a task put under a new key", {"bytes": "B a task"}), ("reschedule", "a task moved", {}),
                               ("cancel_put", "a task cancelled and put again", {}))],
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
    at_most("churn at 1e6 while one timer expires each ms, to the same without", "churn_expiry", "wheel", E6,
            ("of", "churn_far", "wheel", E6), 1.1),
    at_least("start-all at 1e6", "start", "wheel", E6, "steady", 4, "clocked"),
    at_least("churn, coroutine per timer, at 1e5", "churn", "wheel_coroutine", E5, "steady_coroutine", 2.5, "clocked_coroutine"),
    at_least("churn at 1e6, against libev", "churn", "wheel", E6, "libev", 1, "clocked"),
    at_least("expire over 1 s at 1e5", "expire", "wheel", E5, "steady", 20, "ticks"),
    at_least("expire over 1 s at 1e6", "expire", "wheel", E6, "steady", 10, "ticks"),
    at_most("p99 lateness at 1e5, µs", "expire", "wheel", E5, "late_p99_us", 2_000),
    at_most("p99 lateness at 1e6, µs", "expire", "wheel", E6, "late_p99_us", 2_000),
    at_most("early at 1e6", "expire", "wheel", E6, "early", 0),
    at_least("all due at once at 1e6", "overdue", "wheel", E6, "steady", 5, "ticks"),
    at_least("heartbeats of 1 s at 1e5", "heartbeat", "wheel", E5, "steady", 10, "ticks"),
    *[at_most(f"re-arming by 1 ms to 1 s, {n:,} timer{'s' if n > 1 else ''}, to steady_timer", "rearm", "wheel", n,
              ("of", "rearm", "steady", n), 1.05 if n < E2 else 1, floor="ticks") for n in (1, E1, E2, E3)],
    at_most("1e6 expire over 1 s, 64 shards to 1", "shards", "wheel_wait_64", E6, ("of", "shards", "wheel_wait_1", E6), 1.3, "options"),
    at_least("two threads at 1e4", "parallel2", "wheel", E4, "steady", 4, "clocked"),
    at_least("two threads at 1e5", "parallel2", "wheel", E5, "steady", 4, "clocked"),
    *[Target(text, "timers", "parallel2", "wheel", n, ("of", "parallel1", "wheel", n), 1, at_least=True, floor="clocked")
      for text, n in (("two threads' steps/s to one thread's of the wheel, at 1e4", E4), ("the same at 1e5", E5))],
    at_most("bytes per pending async_wait", "memory", "wheel_wait", E6, "bytes", 120),
    at_most("10 million pending, MB", "memory", "wheel_wait", E7, "megabytes", 1_400),
    at_most("64 contexts with a wheel of 64 shards and a wait each, MB", "contexts", "wheel_wait_64", 64, "megabytes", 20, "options"),
    at_most("such a context before its first wait, KB", "contexts", "wheel_wait_64", 64, "unused_kb", 32, "options"),
    at_most("start at 1e7, times its cost at 1e6", "start", "wheel_wait", E7, ("of", "start", "wheel_wait", E6), 1.5),
    at_most("start and cancel at 1e7, times their cost at 1e6", "churn_far", "wheel_slot", E7,
            ("of", "churn_far", "wheel_slot", E6), 1.5),
    at_most("wheel alone: churn at 1e6, times the floor", "churn", "wheel", E6, ("of", "churn", "floor", E6), 2, "alone"),
    at_most("wheel alone: churn at 1e7, times the floor", "churn", "wheel", E7, ("of", "churn", "floor", E7), 2, "alone"),
    at_most("wheel alone: expire at 1e6, ns", "expire", "wheel", E6, "cpu_ns", 40, "alone", "floor"),
    at_most("wheel alone: longest advance at 1e6 beyond its due entries, µs", "worst", "wheel", E6, "beyond_due_us", 500, "alone"),
    *[at_most(f"wheel alone: longest advance at 1e6, {what}, µs", f"worst_{where}", "wheel", E6, "advance_us", 500, "alone")
      for where, what in (("far", "due in 300 to 360 s"), ("slot", "due within 256 ticks"), ("tick", "all on one tick"))],
    at_most("wheel alone: empty advance, ns", "empty", "wheel", 1, "cpu_ns", 5, "alone"),
    at_most("wheel alone: jump over an hour, ns", "jump", "wheel", 1, "cpu_ns", 100, "alone"),
    *[at_most(f"cancel_after on an operation, {n} under way{clock}: clock reads added", "post", contender, n,
              ("added", "none", "clock"), bound, "deadlines", floor)
      for contender, clock, bound, floor in (("cancel_after", "", 2, "floor"),
                                             ("cancel_after_coarse", ", coarse clock", 1, "floor_coarse"))
      for n in (1, 64, E3)],
    at_most("touch() at 1e5, in clock reads", "touch", "watchdog", E5, ("of", "touch", "clock", E5), 1.5, "alive", "store"),
    at_most("touch() at 1e5 with the coarse clock, ns", "touch", "watchdog_coarse", E5, "cold_ns", 10, "alive", "store_coarse"),
    at_most("the same of a connection in the cache, ns", "touch", "watchdog_coarse", E5, "warm_ns", 10, "alive", "store_coarse"),
    Target("heartbeat objects of 1 s at 1e5, against steady_timer", "alive", "beats", "heartbeat", E5,
           ("against", "steady"), 12, at_least=True, floor="ticks"),
    *[at_most(f"keyed_scheduler, {key} keys, 1e6 tasks: {what}", workload, key, E6, metric, bound, "scheduler", f"{key}_map")
      for key in ("string", "integer")
      for what, workload, metric, bound in (("put, ns", "put", "cpu_ns", 300), ("move, ns", "reschedule", "cpu_ns", 400),
                                            ("bytes a task", "put", "bytes", 200))],
    at_most("wake-ups in 5 s, one far wait", "idle", "wheel_wait", 1, "wakeups", 2),
    at_most("wake-ups in 5 s, 100,000 far waits", "idle", "wheel_wait", E5, "wakeups", 2),
]
