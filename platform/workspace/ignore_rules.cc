#include "workspace/ignore_rules.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/text.h"

namespace muster::workspace {

namespace {

constexpr std::array<std::string_view, 3> kAlwaysLeftOut{".git", ".idea", ".pytest_cache"};

/// Removes blanks at the end, except those after a backslash.
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
  // git ignores the rest of a line after a NUL.
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
  // From the folder of `path` up to the root.
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

namespace {

constexpr std::string_view kSpecial = "*?[\\";

unsigned char byte_at(std::string_view text, size_t at) {
  return static_cast<unsigned char>(text[at]);
}

using Class = int (*)(int);
constexpr std::array<std::pair<std::string_view, Class>, 12> kClasses{{
    {"alnum", &::isalnum},
    {"alpha", &::isalpha},
    {"blank", &::isblank},
    {"cntrl", &::iscntrl},
    {"digit", &::isdigit},
    {"graph", &::isgraph},
    {"lower", &::islower},
    {"print", &::isprint},
    {"punct", &::ispunct},
    {"space", &::isspace},
    {"upper", &::isupper},
    {"xdigit", &::isxdigit},
}};

/// Adds the members of the class `name` to `bytes`. False: there is no such class.
bool add_class(std::string_view name, std::bitset<256>& bytes) {
  for (const auto& [candidate, contains] : kClasses) {
    if (candidate != name) continue;
    for (int byte = 0; byte < 128; ++byte) {
      if (contains(byte) != 0) bytes.set(static_cast<size_t>(byte));
    }
    return true;
  }
  return false;
}

}  // namespace

// Like git, this compares the text before the first wildcard literally, and treats the rest as a
// separate pattern. The "**" of "a**/b" is therefore at a beginning and matches slashes.
Glob::Glob(std::string_view pattern)
    : literal_(pattern.substr(0, pattern.find_first_of(kSpecial))) {
  pattern.remove_prefix(literal_.size());
  for (size_t at = 0; at < pattern.size() && !never_;) {
    if (pattern[at] == '*') {
      at = read_stars(pattern, at);
    } else if (pattern[at] == '[') {
      at = read_set(pattern, at);
    } else {
      Step step;
      if (pattern[at] == '?') {
        step.bytes.set().reset('/');
      } else {
        if (pattern[at] == '\\') ++at;
        if (at == pattern.size()) {
          never_ = true;
          break;
        }
        step.bytes.set(byte_at(pattern, at));
      }
      steps_.push_back(step);
      ++at;
    }
  }
  const auto takes_one = [](const Step& step) { return step.kind == Step::Kind::kOneOf; };
  tail_ = static_cast<size_t>(std::find_if_not(steps_.rbegin(), steps_.rend(), takes_one) -
                              steps_.rbegin());
}

/// Parses a run of stars; returns the place after it.
size_t Glob::read_stars(std::string_view pattern, size_t at) {
  const size_t behind = std::min(pattern.find_first_not_of('*', at), pattern.size());
  const std::string_view rest = pattern.substr(behind);
  const bool begins_name = at == 0 || pattern[at - 1] == '/';
  const bool doubled = behind - at > 1 && begins_name;
  if (doubled && rest.starts_with('/')) {
    steps_.push_back({.kind = Step::Kind::kWholeFolders});
    return behind + 1;
  }
  const bool across = doubled && (rest.empty() || rest.starts_with("\\/"));
  steps_.push_back({.kind = across ? Step::Kind::kAcross : Step::Kind::kWithinName});
  return behind;
}

/// Parses a set in brackets; returns the place after it.
size_t Glob::read_set(std::string_view pattern, size_t at) {
  Step step;
  ++at;
  const bool negated = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  if (negated) ++at;
  int before = -1;  // what a range may begin with
  // A ']' at the beginning is a member of the set.
  for (bool first = true; at < pattern.size() && (first || pattern[at] != ']'); first = false) {
    const std::string_view rest = pattern.substr(at);
    if (rest.starts_with("[:")) {
      const size_t end = rest.find(']', 2);
      if (end == std::string_view::npos) break;
      if (end > 2 && rest[end - 1] == ':') {
        if (!add_class(rest.substr(2, end - 3), step.bytes)) break;
        before = -1;
        at += end + 1;
        continue;
      }
    }
    const bool range = rest.size() > 1 && rest[0] == '-' && before >= 0 && rest[1] != ']';
    if (range) ++at;
    if (pattern[at] == '\\') ++at;
    if (at >= pattern.size()) break;
    const int byte = byte_at(pattern, at++);
    for (int member = range ? before : byte; member <= byte; ++member) {
      step.bytes.set(static_cast<size_t>(member));
    }
    before = range ? -1 : byte;
  }
  if (at >= pattern.size() || pattern[at] != ']') {
    never_ = true;
    return at;
  }
  if (negated) step.bytes.flip();
  step.bytes.reset('/');
  steps_.push_back(step);
  return at + 1;
}

/// Marks that the match may be before `step`, and after it if `step` can match nothing.
void Glob::enter(std::vector<bool>& places, size_t step) const {
  while (!places[step]) {
    places[step] = true;
    if (step == steps_.size() || steps_[step].kind == Step::Kind::kOneOf) return;
    ++step;
  }
}

/// Whether the last bytes match the end of the pattern. This rejects most paths for "*.pyc".
bool Glob::ends_right(std::string_view path) const {
  if (path.size() < tail_) return false;
  for (size_t i = 1; i <= tail_; ++i) {
    if (!steps_[steps_.size() - i].bytes.test(byte_at(path, path.size() - i))) return false;
  }
  return true;
}

bool Glob::matches(std::string_view path) const {
  if (never_ || !path.starts_with(literal_)) return false;
  path.remove_prefix(literal_.size());
  if (steps_.empty()) return path.empty();
  if (!ends_right(path)) return false;
  // Tracks all possible places in the pattern, byte by byte, so nothing is tried twice.
  std::vector<bool> places(steps_.size() + 1);
  std::vector<bool> next(steps_.size() + 1);
  // Inside a "**/" that has matched some bytes: it can end only after a '/'.
  std::vector<bool> within(steps_.size() + 1);
  enter(places, 0);
  for (const char letter : path) {
    next.assign(next.size(), false);
    for (size_t step = 0; step < steps_.size(); ++step) {
      const Step::Kind kind = steps_[step].kind;
      if (kind == Step::Kind::kWholeFolders) {
        within[step] = within[step] || places[step];
        if (within[step] && letter == '/') enter(next, step + 1);
      } else if (places[step]) {
        if (kind == Step::Kind::kOneOf) {
          if (steps_[step].bytes.test(static_cast<unsigned char>(letter))) enter(next, step + 1);
        } else if (kind == Step::Kind::kAcross || letter != '/') {
          enter(next, step);
        }
      }
    }
    places.swap(next);
  }
  return places.back();
}

}  // namespace muster::workspace
