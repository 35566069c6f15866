// The flags of an example: a table of them, and how a command line is read by it.
#pragma once

#include <option_readers.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::examples {

struct Flag {
  std::string_view name;
  std::string_view expected;  // as in "--seed is 'x', not a whole number from 0"
  Reader read;
};

/// One without a value.
struct Switch {
  std::string_view name;
  bool& target;
};

template <typename Entry>
const Entry* find(std::span<const Entry> entries, std::string_view name) {
  for (const Entry& entry : entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

/// Reads `--flag value`, `--flag=value` and switches. Every fault goes to `faults`, as a sentence;
/// returned are the names of the flags that stood there.
inline std::vector<std::string_view> read_flags(std::span<const std::string_view> arguments,
                                                std::span<const Flag> flags,
                                                std::span<const Switch> switches,
                                                std::vector<std::string>& faults) {
  std::vector<std::string_view> used;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (const Switch* const found = find(switches, argument)) {
      found->target = true;
      continue;
    }
    const std::size_t equals = argument.find('=');
    const Flag* const flag = find(flags, argument.substr(0, equals));
    if (flag == nullptr) {
      faults.push_back("there is no " + std::string(argument));
      continue;
    }
    used.push_back(flag->name);
    const bool attached = equals != std::string_view::npos;
    if (!attached && i + 1 == arguments.size()) {
      faults.push_back(std::string(flag->name) + " needs a value");
      continue;
    }
    const std::string_view value = attached ? argument.substr(equals + 1) : arguments[++i];
    if (!flag->read(value)) {
      faults.push_back(std::string(flag->name) + " is '" + std::string(value) + "', not " +
                       std::string(flag->expected));
    }
  }
  return used;
}

}  // namespace muster::examples
