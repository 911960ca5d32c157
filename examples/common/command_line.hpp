// What every example's main() needs: options, errors and exit status.
#pragma once

#include "print_error.hpp"

#include <fmt/format.h>
#include <boost/program_options.hpp>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace common {

namespace po = boost::program_options;

/// Refuses what an option is given.
[[noreturn]] inline void refuse(std::string_view name, std::string_view wanted,
                                std::string_view given)
{
  throw po::error(fmt::format("--{} must be {}, not {}", name, wanted, given));
}

/// An option's value. Throws po::error, which says whether it is no number or out of range.
template <class Number>
Number number_in(std::string_view name, std::string_view text, Number lowest, Number highest)
{
  const bool is_below = std::is_unsigned_v<Number> && text.starts_with('-');
  const char* const begin = text.data() + (is_below || text.starts_with('+') ? 1 : 0);
  const char* const end = text.data() + text.size();
  Number value{};
  const auto [stop, ec] = std::from_chars(begin, end, value);
  if (stop != end || ec == std::errc::invalid_argument)
    refuse(name, "a number", fmt::format("'{}'", text));
  // Negated, so that it refuses NaN, too.
  if (ec != std::errc() || is_below || !(value >= lowest && value <= highest))
    refuse(name, fmt::format("within {} and {}", lowest, highest), text);
  return value;
}

/// An option with a range, whose default is the value of `target`. --help shows `unit`.
template <class Number>
po::typed_value<std::string>* ranged(Number& target, std::string name, Number lowest,
                                     Number highest, const char* unit)
{
  return po::value<std::string>()
    ->value_name(unit)
    ->default_value(fmt::to_string(target))
    ->notifier([=, &target, name = std::move(name)](const std::string& text) {
      target = number_in(name, text, lowest, highest);
    });
}

/// Reads the command line. Prints the help and returns false if --help was given. Throws po::error.
/// `unnamed` names the options that may be given without their names.
inline bool parse_command_line(int argc, char** argv, std::string_view intro,
                               po::options_description& options,
                               const po::positional_options_description& unnamed = {})
{
  options.add_options()("help,h", "print this and exit");
  po::variables_map values;
  // No abbreviations: a new option could make them ambiguous.
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

/// Calls `body()`, which returns the exit status. Prints what it throws, and returns 2 for a wrong
/// command line and 1 for everything else, such as a stdout that takes no more.
template <class Body>
int run_program(std::string_view name, Body body)
{
  try {
    const int status = body();
    if (std::fflush(stdout) != 0) throw std::runtime_error("cannot write to the standard output");
    return status;
  } catch (const po::error& e) {
    print_error("{0}: {1}\n{0} --help lists the options.\n", name, e.what());
    return 2;
  } catch (const std::exception& e) {
    print_error("{}: {}\n", name, e.what());
    return EXIT_FAILURE;
  }
}

}  // namespace common
