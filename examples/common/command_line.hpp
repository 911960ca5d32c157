// What every example's main() needs: options, errors and exit status.
#pragma once

#include "print_error.hpp"

#include <fmt/format.h>
#include <boost/program_options.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace common {

namespace po = boost::program_options;

/// Makes a check that refuses values out of range.
template <class Number>
auto in_range(std::string name, Number lowest, Number highest)
{
  return [=](const Number& value) {
    // Negated, so that it refuses NaN, too.
    if (!(value >= lowest && value <= highest))
      throw po::error(
        fmt::format("--{} must be within {} and {}, not {}", name, lowest, highest, value));
  };
}

/// An option with a range, whose default is the value of `target`. --help shows `unit`.
template <class Number>
po::typed_value<Number>* ranged(Number& target, std::string name, Number lowest, Number highest,
                                const char* unit)
{
  return po::value(&target)
    ->value_name(unit)
    ->default_value(target, fmt::to_string(target))
    ->notifier(in_range(std::move(name), lowest, highest));
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
