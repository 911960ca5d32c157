#!/usr/bin/env python3
"""Draws the pictures of the guide, as SVG, readable on light and on dark pages.

    python3 doc/pictures.py           # writes doc/*.svg
    python3 doc/pictures.py --check   # fails if one of them is not what would be written
"""

import math
import pathlib
import sys
from html import escape

HERE = pathlib.Path(__file__).parent

# rule: colour on light, colour on dark
COLOURS = {
    ".page{fill:%s}": ("#ffffff", "#0d1117"),
    "text{fill:%s}": ("#1f2328", "#e6edf3"),
    ".soft{fill:%s}": ("#57606a", "#9aa4af"),
    ".box,.slot{stroke:%s}": ("#8c959f", "#6e7681"),
    ".box{fill:%s}": ("#f6f8fa", "#161b22"),
    ".slot{fill:%s}": ("#ffffff", "#0d1117"),
    ".full{fill:%s}": ("#fed7aa", "#7c2d12"),
    ".aside{fill:%s}": ("#dbeafe", "#1e3a8a"),
    ".now,.line{stroke:%s}": ("#1f2328", "#e6edf3"),
    ".hand{fill:%s}": ("#c2410c", "#fb923c"),
    ".head{fill:%s}": ("#1f2328", "#e6edf3"),
}


def style():
    light, dark = ("".join(rule % colours[i] for rule, colours in COLOURS.items()) for i in (0, 1))
    return ("text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
            ".small{font-size:11px}.strong{font-weight:600}.line{fill:none;stroke-width:1.4}"
            f".dashed{{stroke-dasharray:5 4}}{light}@media(prefers-color-scheme:dark){{{dark}}}")


class Picture:
    def __init__(self, width, height, title):
        self.width, self.height, self.title = width, height, title
        self.parts = []

    def text(self, x, y, content, cls="", anchor="middle"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{cls}" text-anchor="{anchor}">{escape(content)}</text>')

    def rect(self, x, y, width, height, cls, radius=0):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius}" class="{cls}"/>')

    def box(self, x, y, width, height, lines, cls="box"):
        """A box whose first line is its name."""
        self.rect(x, y, width, height, cls if cls == "box" else "box " + cls, 6)
        top = y + height / 2 - 8 * (len(lines) - 1) + 4.5
        for i, line in enumerate(lines):
            self.text(x + width / 2, top + 16 * i, line, "strong" if i == 0 else "soft small")

    def arrow(self, points, cls=""):
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.parts.append(f'<path d="{path}" class="line {cls}" marker-end="url(#head)"/>')

    def sector(self, centre, inner, outer, begin, end, cls):
        """A part of a ring, from one angle to another, in turns from the top."""
        (x, y), corners = centre, []
        for radius, turn in ((inner, begin), (outer, begin), (outer, end), (inner, end)):
            angle = 2 * math.pi * turn
            corners.append((x + radius * math.sin(angle), y - radius * math.cos(angle)))
        (ax, ay), (bx, by), (cx, cy), (dx, dy) = corners
        self.parts.append(f'<path d="M{ax:.1f} {ay:.1f}L{bx:.1f} {by:.1f}A{outer} {outer} 0 0 1 {cx:.1f} {cy:.1f}'
                          f'L{dx:.1f} {dy:.1f}A{inner} {inner} 0 0 0 {ax:.1f} {ay:.1f}Z" class="{cls}"/>')

    def svg(self):
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" role="img">',
            f"<title>{escape(self.title)}</title>", f"<style>{style()}</style>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            '<path d="M0 0L8 4L0 8Z" class="head"/></marker></defs>',
            f'<rect width="{self.width}" height="{self.height}" rx="8" class="page"/>', *self.parts, "</svg>", ""])


SLOTS, FAN = 16, 4  # a quarter of a level's slots make one slot of the next


def wheel():
    """Three levels, and where waits of a few ticks are filed. The horizons are as far ahead as timing_wheel sets them."""
    p = Picture(800, 330, "Three levels of a timing wheel")
    now, waits = 5, (9, 18, 30, 50, 100, 200)
    p.text(400, 28, "Three levels of sixteen slots. It is tick 5; waits are due at ticks 9, 18, 30, 50, 100 and 200.", "strong")
    begin = now
    for level in range(3):
        span = FAN ** level
        end = now - now % (span * FAN) + span * SLOTS
        centre = (140 + 260 * level, 165)
        for slot in range(SLOTS):
            due = [w for w in waits if begin <= w < end and w // span % SLOTS == slot]
            turn = slot / SLOTS
            p.sector(centre, 62, 100, turn, turn + 1 / SLOTS, "slot full" if due else "slot")
            angle = 2 * math.pi * (turn + 0.5 / SLOTS)
            dx, dy = math.sin(angle), -math.cos(angle)
            p.text(centre[0] + 110 * dx, centre[1] + 110 * dy + 4, str(slot), "small soft")
            if due:
                p.text(centre[0] + 81 * dx, centre[1] + 81 * dy + 4.5, ", ".join(map(str, due)), "strong")
        angle = 2 * math.pi * (begin // span % SLOTS + 0.5) / SLOTS
        tip = (centre[0] + 56 * math.sin(angle), centre[1] - 56 * math.cos(angle))
        if level == 0:
            p.arrow([(centre[0], centre[1]), tip])
            p.text(centre[0], centre[1] + 24, "now", "small")
        p.text(centre[0], 303, f"level {level}: a slot is {span} tick{'s' if level else ''}", "strong")
        p.text(centre[0], 320, f"holds ticks {begin} to {end - 1}", "soft")
        begin = end
    return p


def cascade():
    p = Picture(800, 320, "A cascade")
    p.text(400, 28, "Four ticks before tick 28, the slot of level 1 that begins with it is cascaded", "strong")
    cell, left = 44, 76
    for level, y in ((1, 62), (0, 220)):
        span = FAN ** level
        p.text(left - 12, y + 26, f"level {level}", "strong", "end")
        for slot in range(SLOTS):
            full = slot == 7 if level else slot in (12, 14, 15)
            p.rect(left + cell * slot, y, cell, 42, "slot full" if full else "slot")
            p.text(left + cell * (slot + 0.5), y + (-8 if level else 58), str(slot), "small soft")
    p.text(left + cell * 7.5, 80, "28–31", "small strong")
    p.text(left + cell * 7.5, 96, "4 waits", "small soft")
    for slot, content in ((12, ("28",)), (14, ("30", "30")), (15, ("31",))):
        x = left + cell * (slot + 0.5)
        for i, line in enumerate(content):
            p.text(x, 238 + 16 * i + (0 if len(content) > 1 else 8), line, "strong")
        p.arrow([(left + cell * 7.5, 106), (x, 217)])
    p.text(200, 165, "each to the slot of its own tick, 28 = 16 + 12 and so on;", "soft")
    p.text(200, 183, "waits of the same tick in the order of their starts", "soft")
    p.text(400, 304, "Until then, level 0 holds only ticks before 28.", "soft")
    return p


def way_of_a_wait():
    p = Picture(990, 330, "The way of a wait")
    p.box(20, 40, 150, 58, ["async_wait(5s, h)", "the handler moves in"])
    p.box(260, 30, 250, 132, ["shard", "", "", "", "", ""])
    p.box(280, 66, 210, 34, ["timing_wheel"], "full")
    p.text(385, 124, "a lock, for some tens of ns;", "soft small")
    p.text(385, 142, "a slot, found by the deadline’s tick", "soft small")
    p.box(260, 216, 250, 78, ["driver", "a strand and the one steady_timer,", "set to the earliest occupied slot"])
    p.box(600, 66, 180, 66, ["delivery", "each thread takes one", "wait at a time"])
    p.box(600, 222, 180, 78, ["h(error_code)", "through its executor, which is", "asked again if it refuses;",
                              "its memory is free by then"])
    p.box(820, 58, 150, 82, ["deadline", "of an operation: fires", "in a function of its own,", "behind what is queued"],
          "aside")
    p.arrow([(780, 99), (818, 99)])
    p.arrow([(170, 69), (277, 80)])
    p.text(222, 62, "file", "small")
    p.arrow([(315, 162), (315, 214)])
    p.text(307, 193, "earlier than all?", "small", "end")
    p.arrow([(455, 216), (455, 164)])
    p.text(463, 193, "advance", "small", "start")
    p.arrow([(490, 83), (598, 90)])
    p.text(555, 76, "due", "small")
    p.arrow([(95, 180), (95, 150), (258, 150)], "dashed")
    p.text(95, 197, "cancel", "strong")
    p.text(95, 214, "at any time before begin", "soft small")
    p.arrow([(510, 150), (560, 150), (630, 220)], "dashed")
    p.text(548, 180, "cancelled", "small")
    p.arrow([(690, 132), (690, 220)])
    p.text(698, 180, "begin", "small", "start")
    return p


def life_of_a_wait():
    """The states of wait_op.hpp, without the two that only an operation's deadline has."""
    p = Picture(990, 330, "The life of a wait")
    p.box(150, 40, 170, 62, ["filed", "in the wheel, due or not"])
    p.box(430, 40, 190, 62, ["sent", "on its way through the", "executor of its handler"])
    p.box(430, 150, 190, 62, ["requeued", "the executor has refused it;", "the next pass sends it again"])
    p.box(430, 250, 190, 62, ["cancelled", "in a list, or still on its way"], "aside")
    p.box(150, 250, 170, 62, ["rejected", "there are too many"], "aside")
    p.box(780, 40, 190, 62, ["none", "the handler is called", "with success"], "full")
    p.box(780, 250, 190, 62, ["none", "the handler is called with", "operation_aborted"], "full")
    p.arrow([(20, 71), (148, 71)])
    p.text(84, 62, "file", "small")
    p.arrow([(60, 71), (60, 281), (148, 281)], "dashed")
    p.text(104, 272, "reject", "small")
    p.arrow([(320, 71), (428, 71)])
    p.text(374, 62, "deliver", "small")
    p.arrow([(620, 71), (778, 71)])
    p.text(699, 62, "begin", "small")
    p.arrow([(235, 40), (235, 18), (875, 18), (875, 38)])
    p.text(555, 13, "begin, for a handler on the wheel’s executor", "small")
    p.arrow([(480, 102), (480, 148)])
    p.text(472, 130, "refused", "small", "end")
    p.arrow([(570, 150), (570, 104)])
    p.text(578, 130, "deliver", "small", "start")
    p.arrow([(235, 102), (235, 230), (400, 230), (400, 272), (428, 272)], "dashed")
    p.text(243, 170, "cancel", "small", "start")
    p.arrow([(525, 212), (525, 248)], "dashed")
    p.text(533, 235, "cancel", "small", "start")
    p.arrow([(620, 90), (680, 90), (680, 270), (622, 270)], "dashed")
    p.text(688, 180, "cancel", "small", "start")
    p.arrow([(620, 290), (778, 290)])
    p.text(699, 308, "begin", "small")
    p.text(235, 325, "its handler is told: too_many_pending", "soft small")
    return p


def cancel_race():
    p = Picture(800, 260, "The race of cancel and expiry")
    p.box(110, 164, 150, 62, ["filed", "in a slot"])
    p.box(370, 164, 170, 62, ["due", "its tick has come"], "full")
    p.box(650, 164, 130, 62, ["begun", "success"], "full")
    p.box(370, 34, 170, 62, ["cancelled", "cancel() returned 1"], "aside")
    p.box(650, 34, 130, 62, ["begun", "operation_aborted"], "aside")
    p.arrow([(20, 195), (108, 195)])
    p.text(62, 186, "async_wait", "small")
    p.arrow([(260, 195), (368, 195)])
    p.text(314, 186, "expire", "small")
    p.arrow([(540, 195), (648, 195)])
    p.text(594, 186, "begin", "small")
    p.arrow([(185, 164), (185, 65), (368, 65)])
    p.text(275, 56, "cancel()", "small")
    p.arrow([(455, 164), (455, 98)])
    p.text(463, 136, "cancel()", "small", "start")
    p.arrow([(540, 65), (648, 65)])
    p.text(594, 56, "begin", "small")
    return p


def one_session():
    """As examples/line_server has it."""
    p = Picture(940, 470, "One session")
    p.text(470, 28, "One session: what times out, and what that ends", "strong")
    p.rect(20, 46, 900, 404, "box", 10)
    p.text(36, 68, "strand: all handlers and coroutines of the session", "soft", "start")
    rows = (
        (86, ["wheel_watchdog", "60 s without a request"], ["reader", "async_read_until(..., idle.guard())"], "guard: timed_out"),
        (160, ["client", "closes, or the server drains"], None, "eof"),
        (234, ["heartbeat", "3 pings unanswered, 10 s each"], ["keep_alive", "co_await beat.async_next()"], "peer_lost"),
        (308, ["tcp_stream", "write_stall: takes nothing for 5 s"], ["writer", "async_write(stream, ...)"], "timed_out"),
        (382, ["timeout_after(request)", "an answer takes 1 s"], ["answer", "co_spawn(..., timeout_after)"], "timed_out"),
    )
    for y, what, whom, how in rows:
        p.box(40, y, 230, 50, what, "full" if y in (86, 234, 308, 382) else "box")
        if whom:
            p.box(390, y, 230, 50, whom)
            p.arrow([(270, y + 25), (388, y + 25)])
            p.text(329, y + 17, how, "small")
    p.arrow([(270, 185), (505, 185), (505, 138)])
    p.text(329, 177, "eof", "small")
    p.box(730, 196, 170, 90, ["the session", "is over: the writer sends", "what it can, and closes", "the stream; that ends",
                              "whoever is left"], "aside")
    p.arrow([(620, 111), (815, 111), (815, 194)])
    p.arrow([(620, 259), (728, 259)])
    p.arrow([(620, 333), (815, 333), (815, 288)])
    p.text(717, 103, "ends", "small")
    p.text(674, 251, "ends", "small")
    p.text(717, 325, "ends", "small")
    p.box(730, 382, 175, 50, ["the request", "“too slow”; all else goes on"], "aside")
    p.arrow([(620, 407), (728, 407)])
    p.text(674, 399, "ends only", "small")
    return p


def main():
    stale = []
    for draw in (wheel, cascade, way_of_a_wait, life_of_a_wait, cancel_race, one_session):
        file, svg = HERE / f"{draw.__name__}.svg", draw().svg()
        if "--check" not in sys.argv:
            file.write_text(svg, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != svg:
            stale.append(file.name)
    if stale:
        sys.exit(f"not as doc/pictures.py draws them: {', '.join(stale)}")


if __name__ == "__main__":
    main()
