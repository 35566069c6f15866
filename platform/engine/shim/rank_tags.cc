#include "engine/shim/rank_tags.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace muster::engine {

using job::LogStream;

namespace {

// "[prterun-a-long-host-name-4711@1,123456]<stderr>:" is about the longest.
constexpr size_t kLongestRankTag = 96;

struct StreamName {
  std::string_view name;
  LogStream stream;
};
constexpr std::array<StreamName, 3> kStreams{{{"<stdout>:", LogStream::kOutput},
                                              {"<stderr>:", LogStream::kError},
                                              {"<stddiag>:", LogStream::kError}}};

std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

/// Whether it may stand in the brackets of a tag: a rank, or a job and a rank.
bool may_be_inside(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
           (letter >= 'A' && letter <= 'Z') || letter == ',' || letter == '@' || letter == '-' ||
           letter == '.' || letter == '_';
  });
}

}  // namespace

RankTags::Found RankTags::read_tag(std::string_view text, Tag& tag) const {
  if (text.front() != '[') return Found::kNone;
  const size_t close = text.substr(0, kLongestRankTag).find(']');
  if (!may_be_inside(text.substr(1, std::min(close, text.size()) - 1))) return Found::kNone;
  if (close == std::string_view::npos) {
    return text.size() < kLongestRankTag ? Found::kUndecided : Found::kNone;
  }
  const std::string_view inside = text.substr(1, close - 1);
  const auto rank = number_of(inside.substr(inside.rfind(',') + 1));
  if (!rank) return Found::kNone;
  tag.rank = *rank;
  const std::string_view behind = text.substr(close + 1);
  if (behind.empty()) return Found::kUndecided;
  if (bare_ && at_start_ && behind.front() == ' ' && number_of(inside)) {
    tag.stream = stream_;
    tag.size = close + 2;
    tag.bare = true;
    return Found::kTag;
  }
  for (const StreamName& known : kStreams) {
    // One byte more: it may be a blank that belongs to the tag.
    if (behind.size() <= known.name.size()) {
      if (known.name.starts_with(behind)) return Found::kUndecided;
    } else if (behind.starts_with(known.name)) {
      tag.stream = known.stream;
      tag.size = close + 1 + known.name.size();
      tag.bare = false;
      return Found::kTag;
    }
  }
  return Found::kNone;
}

/// With the blank behind it, where that is not the text's own.
size_t RankTags::size_of(const Tag& tag, std::string_view text) {
  if (tag.bare) return tag.size;
  const char behind = text[tag.size];
  if (behind != ' ' && behind != '\n') blank_behind_ = false;
  return tag.size + (blank_behind_ && behind == ' ' ? 1 : 0);
}

/// So many of the next bytes belong to the present source, whatever comes behind them.
size_t RankTags::plain_bytes(std::string_view text) const {
  const size_t newline = text.find('\n');
  const size_t line = newline == std::string_view::npos ? text.size() : newline + 1;
  if (!in_tagged_) return line;
  // The first byte was looked at.
  return std::min(line, text.find('[', 1));
}

void RankTags::take(std::string_view bytes, const Emit& emit) {
  // Lines of no rank, one after the other, go on in one piece.
  const char* begin = bytes.data();
  const auto pass_on = [&](const char* end) {
    if (end != begin) emit(rank_, line_stream_, {begin, static_cast<size_t>(end - begin)});
    begin = end;
  };
  while (!bytes.empty()) {
    if (at_start_ || in_tagged_) {
      Tag tag;
      const Found found = read_tag(bytes, tag);
      if (found == Found::kUndecided) break;
      const bool changes = found == Found::kTag || (at_start_ && rank_);
      if (changes) pass_on(bytes.data());
      if (found == Found::kTag) {
        bytes.remove_prefix(size_of(tag, bytes));
        begin = bytes.data();
        rank_ = tag.rank;
        line_stream_ = tag.stream;
        in_tagged_ = !tag.bare;
        at_start_ = false;
        continue;
      }
      if (at_start_) {
        rank_.reset();
        line_stream_ = stream_;
        in_tagged_ = false;
      }
    }
    const size_t plain = plain_bytes(bytes);
    at_start_ = bytes[plain - 1] == '\n';
    bytes.remove_prefix(plain);
  }
  pass_on(bytes.data());
  held_ = bytes;
}

void RankTags::add(std::string_view bytes, const Emit& emit) {
  if (held_.empty()) return take(bytes, emit);
  const std::string whole = std::exchange(held_, {}).append(bytes);
  take(whole, emit);
}

void RankTags::finish(const Emit& emit) {
  if (held_.empty()) return;
  // A tag with nothing behind it is none that could be shown.
  if (at_start_) {
    rank_.reset();
    line_stream_ = stream_;
  }
  emit(rank_, line_stream_, std::exchange(held_, {}));
}

}  // namespace muster::engine
