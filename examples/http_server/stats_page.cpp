// The page that draws /stats.json: plain HTML, SVG and a script, all in one piece.
#include "stats.hpp"

namespace web {

const std::string_view stats_page = R"html(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>asio_wheel: the wheel at work</title>
<link rel="icon" href="data:,">
<style>
  :root {
    --page: #f6f7f9; --card: #fff; --edge: #dfe3e8; --text: #1d2430; --faint: #667080;
    --grid: #e9ecf0; --pending: #2563c9; --wakeups: #c2570c; --lateness: #0d8060; --bad: #b3261e;
  }
  @media (prefers-color-scheme: dark) {
    :root {
      --page: #12161c; --card: #1b2129; --edge: #2d3540; --text: #e4e8ee; --faint: #93a0b0;
      --grid: #28303a; --pending: #6ea2f5; --wakeups: #f0985a; --lateness: #4cc39d; --bad: #f2877f;
    }
  }
  * { box-sizing: border-box }
  body {
    margin: 0 auto; padding: 24px; max-width: 1100px; background: var(--page);
    color: var(--text); font: 15px/1.45 system-ui, sans-serif;
  }
  header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 16px; margin-bottom: 16px }
  h1 { margin: 0; font-size: 22px }
  h2 { margin: 0; font-size: 15px }
  small, .unit, figcaption p { color: var(--faint); font-size: 13px }
  #state.lost { color: var(--bad) }
  /* Ten tiles fill whole rows at any width, and have the same width whatever is in them. */
  #tiles { display: grid; gap: 12px; grid-template-columns: repeat(5, minmax(0, 1fr)) }
  @media (max-width: 520px) { #tiles { grid-template-columns: repeat(2, minmax(0, 1fr)) } }
  #charts { display: grid; gap: 12px; grid-template-columns: repeat(2, 1fr); margin-top: 12px }
  #charts .wide { grid-column: 1 / -1 }
  @media (max-width: 700px) { #charts { grid-template-columns: 1fr } }
  #tiles div, figure {
    margin: 0; padding: 14px 16px; background: var(--card); border: 1px solid var(--edge);
    border-radius: 10px; min-width: 0;
  }
  #tiles div { padding: 14px 12px; white-space: nowrap; overflow: hidden }
  #tiles b { display: block; font-size: 22px; line-height: 1.2; font-variant-numeric: tabular-nums }
  table { width: 100%; margin-top: 8px; border-spacing: 0; table-layout: fixed; color: var(--text) }
  th, td { padding: 3px 12px 3px 0; text-align: right; font-size: 13px; font-weight: normal;
    border-top: 1px solid var(--grid); font-variant-numeric: tabular-nums; white-space: nowrap }
  th { color: var(--faint); border: 0; width: 92px }
  th:last-child, td:last-child { text-align: left; width: auto; padding-right: 0;
    overflow: hidden; text-overflow: ellipsis }
  figcaption { display: flex; justify-content: space-between; align-items: baseline; gap: 12px }
  figcaption p { margin: 0; text-align: right; font-variant-numeric: tabular-nums }
  svg { display: block; width: 100%; height: 220px; margin-top: 8px; overflow: visible }
  svg text { fill: var(--faint); font-size: 12px }
  svg .grid { stroke: var(--grid) }
  svg .line { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round }
  svg .area { fill: currentColor; opacity: .13 }
  svg .bar { fill: currentColor }
</style>
<header>
  <h1>The wheel at work</h1>
  <small id="state" role="status">connecting…</small>
</header>
<div id="tiles"></div>
<div id="charts">
  <figure style="color: var(--pending)"><figcaption><h2>Pending waits, last two minutes</h2><p></p></figcaption>
    <svg id="pending" role="img" aria-label="Pending waits over the last two minutes"></svg></figure>
  <figure style="color: var(--wakeups)"><figcaption><h2>Wake-ups per second, last two minutes</h2><p></p></figcaption>
    <svg id="wakeups" role="img" aria-label="Wake-ups over the last two minutes"></svg></figure>
  <figure class="wide" style="color: var(--lateness)"><figcaption><h2>Expired waits by lateness, each bucket twice the one before</h2><p></p></figcaption>
    <svg id="lateness" role="img" aria-label="How many waits were how late since the start, on a logarithmic scale"></svg></figure>
  <figure class="wide"><figcaption><h2>Timeouts</h2><p>share of the time used by those that were met</p></figcaption>
    <table><thead><tr><th>limit</th><th>operations</th><th>expired</th><th>p50</th><th>p99</th><th>name</th></tr></thead>
      <tbody id="timeouts"></tbody></table></figure>
  <figure class="wide"><figcaption><h2>Who waits</h2><p id="types"></p></figcaption>
    <table><thead><tr><th>count</th><th>earliest</th><th>latest</th><th>handler</th></tr></thead>
      <tbody id="waiting"></tbody></table></figure>
</div>
<script>
'use strict'
const seconds = 120, kept = []  // readings, the newest last

const si = (n, units) => {
  const i = n < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(n) / 3 + 1e-9))
  const v = n / 1000 ** i
  return (v < 10 ? +v.toFixed(1) : Math.round(v)) + units[i]
}
const count = n => si(n, ['', ' k', ' M', ' G'])
const time = ns => si(ns, [' ns', ' µs', ' ms', ' s'])
const exact = n => Math.round(n).toLocaleString('en').replaceAll(',', '\u202f')
const short = n => n < 100000 ? exact(n) : count(n)

// A round number that is not below n, to end an axis with.
const ceiling = n => {
  const power = 10 ** Math.floor(Math.log10(Math.max(n, 4)))
  return [1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10].map(m => m * power).find(v => v >= n && v >= 4)
}

function draw(id, caption, highest, label, body) {
  const svg = document.getElementById(id)
  const size = svg.getBoundingClientRect()
  const box = {left: 52, right: size.width - 8, top: 8, bottom: size.height - 22}
  const y = v => box.bottom - (box.bottom - box.top) * v / highest
  let text = ''
  for (const v of [0, .25, .5, .75, 1].map(part => part * highest))
    text += `<line class="grid" x1="${box.left}" x2="${box.right}" y1="${y(v)}" y2="${y(v)}"/>` +
      `<text x="${box.left - 8}" y="${y(v) + 4}" text-anchor="end">${label(v)}</text>`
  svg.innerHTML = text + body(box, y)
  svg.parentNode.querySelector('p').textContent = caption
}

function drawTimes(id, caption, points) {
  const highest = ceiling(Math.max(...points.map(p => p[1])))
  draw(id, caption, highest, count, (box, y) => {
    const x = ago => box.right - (box.right - box.left) * ago / seconds
    const line = points.map(([ago, v]) => `${x(ago).toFixed(1)} ${y(v).toFixed(1)}`).join('L')
    let text = `<path class="area" d="M${x(points[0][0])} ${box.bottom}L${line}L${box.right} ${box.bottom}Z"/>` +
      `<path class="line" d="M${line}"/>`
    for (const ago of [120, 90, 60, 30, 0])
      text += `<text x="${x(ago)}" y="${box.bottom + 17}" text-anchor="${ago ? 'middle' : 'end'}">` +
        `${ago ? `−${ago} s` : 'now'}</text>`
    return text
  })
}

function drawBuckets(late) {
  const n = late.buckets, used = n.findLastIndex(v => v > 0)
  const first = 10, last = Math.max(used, 24)  // 2^10 ns is about 1 µs, and less is as good
  const bars = [n.slice(0, first + 1).reduce((a, b) => a + b), ...n.slice(first + 1, last + 1)]
  const caption = used < 0 ? 'none has expired yet'
    : `p50 ${time(late.p50_ns)} · p99 ${time(late.p99_ns)} · max ${time(late.max_ns)}`
  draw('lateness', caption, ceiling(Math.max(...bars)), count, (box, y) => {
    const wide = (box.right - box.left) / bars.length
    return bars.map((v, i) => {
      const x = box.left + wide * i, below = time(2 ** (first + i))
      const shown = i % Math.ceil(62 / wide) == 0
      return `<rect class="bar" x="${x + wide * .12}" width="${wide * .76}" y="${y(v)}" ` +
        `height="${box.bottom - y(v)}" rx="2"><title>${exact(v)} below ${below}</title></rect>` +
        (shown ? `<text x="${x + wide / 2}" y="${box.bottom + 17}" text-anchor="middle">&lt; ${below}</text>` : '')
    }).join('')
  })
}

// A time in ms from now on; null is never.
const when = ms => ms === null ? 'never' : ms < 0 ? time(-ms * 1e6) + ' ago' : 'in ' + time(ms * 1e6)

function fillTable(id, lines) {
  document.getElementById(id).replaceChildren(...lines.map(cells => {
    const line = document.createElement('tr')
    for (const text of cells) line.insertCell().textContent = text
    line.lastChild.title = cells.at(-1)
    return line
  }))
}

function fillWaiting(rows) {
  const most = 8
  fillTable('waiting', rows.slice(0, most).map(r => [exact(r.count), when(r.earliest_ms),
    when(r.latest_ms), r.handler.replace(/boost::asio::(detail::)?/g, '')]))
  document.getElementById('types').textContent =
    `${rows.length} ${rows.length == 1 ? 'type' : 'types'} of handlers` +
    (rows.length > most ? `, of which ${most} are shown` : '')
}

function show() {
  const now = kept.at(-1), before = kept.at(-2) ?? now
  const elapsed = (now.at - before.at) / 1000 || 1
  const rate = of => (of(now) - of(before)) / elapsed
  const total = o => Object.values(o).reduce((a, b) => a + b)
  const tiles = [
    ['connections', short(now.connections)],
    ['pressure', (100 * now.pressure).toFixed(1) + ' %'],
    ['requests/s', short(rate(s => s.requests))],
    ['timed out', short(total(now.timed_out))],
    ['evicted', short(now.evicted)],
    ['waits pending', short(now.wheel.pending)],
    ['waits started/s', short(rate(s => s.wheel.started))],
    ['waits expired/s', short(rate(s => s.wheel.expired))],
    ['deadlines met/s', short(rate(s => s.wheel.met))],
    ['CPU', (100 * rate(s => s.cpu_s)).toFixed(1) + ' %']
  ]
  document.getElementById('tiles').innerHTML =
    tiles.map(([name, value]) => `<div><b>${value}</b><span class="unit">${name}</span></div>`).join('')

  const ago = s => (now.at - s.at) / 1000
  drawTimes('pending', `${exact(now.wheel.pending)} now`, kept.map(s => [ago(s), s.wheel.pending]))
  const rates = kept.slice(1).map((s, i) =>
    [ago(s), (s.wheel.wakeups - kept[i].wheel.wakeups) / (s.at - kept[i].at) * 1000])
  drawTimes('wakeups', `${exact(now.wheel.wakeups)} in all`, rates.length ? rates : [[0, 0]])
  drawBuckets(now.wheel.lateness)
  const percent = share => '≤ ' + +(100 * share).toFixed(1) + ' %'
  fillTable('timeouts', now.timeouts.map(t => [time(t.limit_ms * 1e6), short(t.started),
    short(t.expired), percent(t.used_p50), percent(t.used_p99), t.name]))
  fillWaiting(now.waiting)
}

function say(text, lost) {
  const state = document.getElementById('state')
  state.textContent = text
  state.className = lost ? 'lost' : ''
}

async function update() {
  try {
    const answer = await fetch('stats.json', {cache: 'no-store'})
    if (!answer.ok) throw Error(answer.status)
    kept.push({...await answer.json(), at: performance.now()})
    while (kept.at(-1).at - kept[0].at > seconds * 1000) kept.shift()
    show()
    say('live, every second')
  } catch (e) {
    say(`the server does not answer (${e.message}); trying again`, true)
  }
  setTimeout(update, 1000)
}
addEventListener('resize', () => kept.length && show())
update()
</script>
</html>
)html";

}  // namespace web
