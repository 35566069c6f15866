// Reads the flags of the examples and their values.
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

/// Reads the text of a value; false if it is invalid. The target outlives the reader.
using Reader = std::function<bool(std::string_view)>;

/// A number between bounds. `Target` is T or std::optional<T>.
template <typename T, typename Target>
Reader number(Target& target, T least, T most) {
  return [&target, least, most](std::string_view text) {
    T value{};
    const char* const end = text.data() + text.size();
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): `end` marks the end
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    // The negated comparison rejects NaN as well.
    if (error != std::errc{} || stopped != end || !(value >= least && value <= most)) return false;
    target = value;
    return true;
  };
}

/// Any non-empty text.
inline Reader text(std::string& target) {
  return [&target](std::string_view value) {
    target = value;
    return !value.empty();
  };
}

/// A word of a table, which outlives the reader.
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

// The flags of an example as a table, and the function that reads a command line with it.

struct Flag {
  std::string_view name;
  std::string_view expected;  // as in "--seed is 'x', not a whole number from 0"
  Reader read;
};

/// A flag without a value.
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

/// Reads `--flag value`, `--flag=value` and switches. Appends each fault to `faults`, as a
/// sentence. Returns the names of the flags that were used.
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
      faults.push_back("unknown flag " + std::string(argument));
      continue;
    }
    used.push_back(flag->name);
    const bool attached = equals != std::string_view::npos;
    if (!attached && i + 1 == arguments.size()) {
      faults.push_back(std::string(flag->name) + " requires a value");
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
