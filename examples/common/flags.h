// How the examples read the values of their flags.
#pragma once

#include <charconv>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace muster::examples {

/// Takes the text of a value; false where it is not one. What it is to be written to outlives it.
using Reader = std::function<bool(std::string_view)>;

/// A number in bounds. `Target` is a T or may be without one.
template <typename T, typename Target>
Reader number(Target& target, T least, T most) {
  return [&target, least, most](std::string_view text) {
    T value{};
    const char* const end = text.data() + text.size();
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): `end` says where it ends
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    // The comparison is the way round that is false for NaN.
    if (error != std::errc{} || stopped != end || !(value >= least && value <= most)) return false;
    target = value;
    return true;
  };
}

/// Any text but none.
inline Reader text(std::string& target) {
  return [&target](std::string_view value) {
    target = value;
    return !value.empty();
  };
}

/// One of the words of a table, which outlives the reader.
template <typename T, std::size_t Count>
Reader word(T& target, const std::pair<std::string_view, T> (&words)[Count]) {
  return [&target, &words](std::string_view text) {
    for (const auto& [name, value] : words) {
      if (name != text) continue;
      target = value;
      return true;
    }
    return false;
  };
}

// The flags of an example: a table of them, and how a command line is read by it.

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
