// The result of a simulation: its audit, its table, and the file that chart.py draws.
#pragma once

#include "fleet.hpp"

#include <asio_wheel.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace simulate {

/// The figures at one time.
struct sample {
  double hours = 0;  // simulated
  figures counted;
  std::uint64_t closed = 0;
};

struct results {
  std::vector<sample> samples;  // from the start, where all is zero, to the end
  std::uint64_t failing = 0;    // peers that are not given up yet
  histogram lateness;
  asio_wheel::wheel_stats wheel;
  double processor_seconds = 0;  // without the time to connect the fleet
  double real_seconds = 0;
  double memory = 0;  // bytes, at most

  const figures& total() const { return samples.back().counted; }
  double simulated_seconds() const { return samples.back().hours * 3600; }
};

/// Returns a sentence for each figure that does not add up.
std::vector<std::string> audit(const settings& s, const results& r);

void print(const settings& s, const results& r);

/// Throws std::runtime_error if `file` cannot be written. Leaves what is in it alone.
void need_writable(const std::string& file);

/// Throws std::runtime_error if `file` cannot be written.
void write_json(const std::string& file, const settings& s, const results& r);

}  // namespace simulate
