#include "engine/slurm/node_list.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "base/units.h"

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr size_t kLongestNumber = 12;

Error no_list(std::string_view list) {
  constexpr size_t kShown = 200;
  return Error{.code = ErrorCode::kInvalid,
               .what = "'" + std::string(list.substr(0, kShown)) + "' is no list of nodes"};
}

/// "n[1-2],m[3,4]" is two names, for commas in brackets part none.
std::vector<std::string_view> names_in(std::string_view list) {
  std::vector<std::string_view> names;
  size_t first = 0;
  bool is_inside = false;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && !is_inside)) {
      names.push_back(list.substr(first, i - first));
      first = i + 1;
    } else if (list[i] == '[') {
      is_inside = true;
    } else if (list[i] == ']') {
      is_inside = false;
    }
  }
  return names;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= kLongestNumber &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// "007-010": 007, 008, 009, 010. False: it is no range, or too long.
bool add_range(std::string_view range, std::vector<std::string>& numbers) {
  const size_t dash = range.find('-');
  const std::string_view first = range.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
  if (!is_number(first) || !is_number(last)) return false;
  const uint64_t from = *base::number_of<uint64_t>(first);
  const uint64_t to = *base::number_of<uint64_t>(last);
  if (to < from || to - from >= kMostNodes) return false;
  for (uint64_t number = from; number <= to; ++number) {
    std::string text = std::to_string(number);
    if (text.size() < first.size()) text.insert(0, first.size() - text.size(), '0');
    numbers.push_back(std::move(text));
  }
  return numbers.size() <= kMostNodes;
}

bool multiply(std::vector<std::string>& names, const std::vector<std::string>& ends) {
  if (ends.empty() || names.size() > kMostNodes / ends.size()) return false;
  std::vector<std::string> longer;
  longer.reserve(names.size() * ends.size());
  for (const std::string& name : names) {
    for (const std::string& end : ends) longer.push_back(name + end);
  }
  names = std::move(longer);
  return true;
}

/// False: it is no name.
bool expand(std::string_view name, std::vector<std::string>& names) {
  names = {""};
  while (!name.empty()) {
    const size_t open = name.find('[');
    const std::string_view plain = name.substr(0, open);
    if (plain.find(']') != std::string_view::npos) return false;
    for (std::string& each : names) each += plain;
    if (open == std::string_view::npos) break;
    const size_t close = name.find(']', open);
    if (close == std::string_view::npos) return false;
    std::vector<std::string> numbers;
    for (const std::string& range : base::split(name.substr(open + 1, close - open - 1), ',')) {
      if (!add_range(range, numbers)) return false;
    }
    if (!multiply(names, numbers)) return false;
    name.remove_prefix(close + 1);
  }
  return !names.front().empty();
}

bool is_none(std::string_view list) {
  return list.empty() || list == "(null)" || list == "None" || list == "None assigned";
}

}  // namespace

Result<std::vector<std::string>> expand_nodes(std::string_view list) {
  std::vector<std::string> nodes;
  if (is_none(list)) return nodes;
  for (const std::string_view name : names_in(list)) {
    std::vector<std::string> names;
    if (!expand(name, names) || nodes.size() + names.size() > kMostNodes) return no_list(list);
    std::move(names.begin(), names.end(), std::back_inserter(nodes));
  }
  return nodes;
}

}  // namespace muster::engine::slurm
