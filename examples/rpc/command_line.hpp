// What both programs ask of the outside: the command line, the limit of open files, the terminal,
// what the process has cost so far.
#pragma once

#include <fmt/format.h>
#include <boost/program_options.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#if __has_include(<sys/resource.h>) && __has_include(<unistd.h>)
#define RPC_HAS_POSIX 1
#include <sys/resource.h>
#include <unistd.h>
#else
#define RPC_HAS_POSIX 0
#endif

namespace rpc {

namespace po = boost::program_options;

/// Refuses the values of an option that are out of range.
template <class Number>
auto in_range(std::string name, Number lowest, Number highest)
{
  return [=](const Number& value) {
    // Written so that NaN is refused too.
    if (!(value >= lowest && value <= highest))
      throw po::error(
        fmt::format("--{} must be within {} and {}, not {}", name, lowest, highest, value));
  };
}

/// An option with a default (what `target` holds) and a range; `unit` is shown by --help.
template <class Number>
po::typed_value<Number>* ranged(Number& target, std::string name, Number lowest, Number highest,
                                const char* unit)
{
  return po::value(&target)
    ->value_name(unit)
    ->default_value(target, fmt::to_string(target))
    ->notifier(in_range(std::move(name), lowest, highest));
}

/// False if the program was only asked for help, which is then printed. Throws po::error.
/// `unnamed` says which of the options may be given without their name.
inline bool parse_command_line(int argc, char** argv, std::string_view intro,
                               po::options_description& options,
                               const po::positional_options_description& unnamed = {})
{
  options.add_options()("help,h", "print this and exit");
  po::variables_map values;
  // An abbreviation that works today would be ambiguous with the next option.
  const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
  po::store(
    po::command_line_parser(argc, argv).options(options).positional(unnamed).style(style).run(),
    values);
  if (values.contains("help")) {
    std::ostringstream text;
    text << options;
    fmt::print("{}\n{}", intro, text.str());
    return false;
  }
  po::notify(values);
  return true;
}

/// What a program does, as its main(): says what is wrong, and with what the exit status is then: 2
/// for the command line, else 1. `body()` returns it if nothing is.
template <class Body>
int run_program(std::string_view name, Body body)
{
  try {
    return body();
  } catch (const po::error& e) {
    fmt::print(stderr, "{0}: {1}\n{0} --help lists the options.\n", name, e.what());
    return 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\n", name, e.what());
    return EXIT_FAILURE;
  }
}

/// Raises the limit of open files to `wanted`, or as far as it goes, and returns what it is then.
inline std::uint64_t raise_open_file_limit(std::uint64_t wanted)
{
#if RPC_HAS_POSIX
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  if (limit.rlim_cur < wanted) {
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : static_cast<rlim_t>(wanted);
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
  }
  return limit.rlim_cur;
#else
  return wanted;
#endif
}

/// Whether a line on stderr can be rewritten.
inline bool stderr_is_terminal()
{
#if RPC_HAS_POSIX
  return isatty(STDERR_FILENO) != 0;
#else
  return false;
#endif
}

/// What the process has cost so far.
struct usage {
  std::uint64_t cpu_us = 0;
  std::uint64_t wakeups = 0;  // voluntary context switches: it slept, and was woken
};

inline usage usage_so_far()
{
#if RPC_HAS_POSIX
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  const auto us = [](const timeval& t) { return t.tv_sec * 1'000'000 + t.tv_usec; };
  return {static_cast<std::uint64_t>(us(u.ru_utime) + us(u.ru_stime)),
          static_cast<std::uint64_t>(u.ru_nvcsw)};
#else
  return {static_cast<std::uint64_t>(static_cast<double>(std::clock()) * 1e6 / CLOCKS_PER_SEC), 0};
#endif
}

}  // namespace rpc
