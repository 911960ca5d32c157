// What every example's main() needs: options, errors and exit status.
#pragma once

#include <fmt/format.h>
#include <boost/program_options.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace common {

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
inline bool parse_command_line(int argc, char** argv, std::string_view intro,
                               po::options_description& options)
{
  options.add_options()("help,h", "print this and exit");
  po::variables_map values;
  // An abbreviation that works today would be ambiguous with the next option.
  const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
  const po::positional_options_description none;
  po::store(
    po::command_line_parser(argc, argv).options(options).positional(none).style(style).run(),
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
/// command line and 1 for everything else.
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

}  // namespace common
