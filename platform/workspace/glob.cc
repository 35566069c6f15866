#include "workspace/glob.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace muster::workspace {

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

/// Whether there is a class of that name; its members join `bytes`.
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

// git compares what stands before the first wildcard by itself and takes the rest for a pattern of
// its own, so that the "**" of "a**/b" is at a beginning and crosses slashes. So it is here.
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

/// Reads a run of stars; the place behind it.
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

/// Reads a set in brackets; the place behind it.
size_t Glob::read_set(std::string_view pattern, size_t at) {
  Step step;
  ++at;
  const bool negated = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  if (negated) ++at;
  int before = -1;  // what a range may begin with
  // A ']' that stands first is one of the set.
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

/// Marks that the match may stand before `step`, and before what follows steps that take nothing.
void Glob::enter(std::vector<bool>& places, size_t step) const {
  while (!places[step]) {
    places[step] = true;
    if (step == steps_.size() || steps_[step].kind == Step::Kind::kOneOf) return;
    ++step;
  }
}

/// Whether the last bytes are those that the pattern ends in: "*.pyc" needs no more to be refused.
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
  // All places in the pattern where the match may stand, byte by byte: nothing is tried twice.
  std::vector<bool> places(steps_.size() + 1);
  std::vector<bool> next(steps_.size() + 1);
  // Within a "**/", that has begun to take bytes: it may end behind a '/' alone.
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
