#include "workspace/ignore_rules.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace muster::workspace {

namespace {

constexpr std::array<std::string_view, 3> kAlwaysLeftOut{".git", ".idea", ".pytest_cache"};

/// Without the blanks at its end, but for those behind a backslash.
std::string_view without_trailing_blanks(std::string_view line) {
  size_t length = 0;
  for (size_t at = 0; at < line.size(); ++at) {
    const bool escaped = line[at] == '\\' && at + 1 < line.size();
    if (escaped) ++at;
    if (escaped || line[at] != ' ') length = at + 1;
  }
  return line.substr(0, length);
}

bool matches_pattern(std::string_view pattern, const std::string& path, bool is_folder) {
  if (pattern.starts_with("./")) pattern.remove_prefix(2);
  if (pattern.ends_with('/')) {
    if (!is_folder) return false;
    pattern.remove_suffix(1);
  }
  return ::fnmatch(std::string(pattern).c_str(), path.c_str(), 0) == 0;
}

}  // namespace

IgnoreRules::IgnoreRules(std::vector<std::string> patterns) : patterns_(std::move(patterns)) {}

void IgnoreRules::add_file(std::string_view folder, std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  Rules rules;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    add_line(line, rules);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (!rules.empty()) rules_.insert_or_assign(std::string(folder), std::move(rules));
}

void IgnoreRules::add_line(std::string_view line, Rules& rules) {
  if (line.starts_with('#')) return;
  // git reads a line as far as a NUL.
  line = without_trailing_blanks(line.substr(0, line.find('\0')));
  const bool takes_back = line.starts_with('!');
  if (takes_back) line.remove_prefix(1);
  const bool folders_only = line.ends_with('/');
  if (folders_only) line.remove_suffix(1);
  const bool anchored = line.find('/') != std::string_view::npos;
  if (line.starts_with('/')) line.remove_prefix(1);
  if (line.empty()) return;
  rules.push_back({.glob = Glob(line),
                   .takes_back = takes_back,
                   .folders_only = folders_only,
                   .anchored = anchored});
}

bool IgnoreRules::leaves_out(std::string_view path, bool is_folder) const {
  if (std::find(kAlwaysLeftOut.begin(), kAlwaysLeftOut.end(), path) != kAlwaysLeftOut.end()) {
    return true;
  }
  if (!patterns_.empty()) {
    const std::string terminated(path);
    for (const std::string& pattern : patterns_) {
      if (matches_pattern(pattern, terminated, is_folder)) return true;
    }
  }
  // From the folder that `path` lies in up to the root.
  std::string_view folder = path;
  while (!folder.empty()) {
    const size_t slash = folder.rfind('/');
    folder = slash == std::string_view::npos ? std::string_view() : folder.substr(0, slash);
    const auto found = rules_.find(folder);
    if (found == rules_.end()) continue;
    const std::string_view below = folder.empty() ? path : path.substr(folder.size() + 1);
    const std::string_view name = path.substr(path.rfind('/') + 1);
    const Rules& rules = found->second;
    const auto decides = [&](const Rule& rule) {
      return (is_folder || !rule.folders_only) && rule.glob.matches(rule.anchored ? below : name);
    };
    const auto last = std::find_if(rules.rbegin(), rules.rend(), decides);
    if (last != rules.rend()) return !last->takes_back;
  }
  return false;
}

std::vector<std::string> split_patterns(std::string_view list) {
  std::vector<std::string> patterns;
  for (const std::string& part : base::split(list, ',')) {
    constexpr std::string_view kBlanks = " \t\r\n";
    const size_t first = part.find_first_not_of(kBlanks);
    if (first == std::string::npos) continue;
    patterns.push_back(part.substr(first, part.find_last_not_of(kBlanks) - first + 1));
  }
  return patterns;
}

}  // namespace muster::workspace
