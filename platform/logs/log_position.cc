#include "logs/log_position.h"

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"
#include "base/units.h"
#include "base/varint.h"

namespace muster::logs {

using base::number_of;
using Part = LogPosition::Part;
using Source = LogPosition::Source;

namespace {

constexpr std::string_view kStreams = "oen";  // in the order of job::LogStream
constexpr std::string_view kWhats = "-~^+";   // in the order of Part::What
constexpr char kDamageShown = '!';

/// Removes the text up to `separator`, and the separator; returns the text.
std::string_view take_until(std::string_view& rest, char separator) {
  const size_t end = rest.find(separator);
  const std::string_view word = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return word;
}

void append(std::string& text, const Part& part) {
  text += ',';
  if (part.rank) text += std::to_string(*part.rank);
  text += kStreams[static_cast<size_t>(part.stream)];
  text += kWhats[static_cast<size_t>(part.what)];
  text += std::to_string(part.bytes);
}

void append(std::string& text, const Source& source) {
  text += ';';
  text += std::to_string(source.attempt);
  text += '.';
  text += source.task;
  text += '@';
  if (source.from != source.at) text += std::to_string(source.from) + "-";
  text += std::to_string(source.at);
  if (source.damage_shown) text += kDamageShown;
  for (const Part& part : source.parts) append(text, part);
}

std::optional<Part> part_of(std::string_view text) {
  const size_t letter = text.find_first_of(kStreams);
  if (letter == std::string_view::npos || letter + 1 >= text.size()) return std::nullopt;
  const size_t stream = kStreams.find(text[letter]);
  const size_t what = kWhats.find(text[letter + 1]);
  const auto bytes = number_of<uint64_t>(text.substr(letter + 2));
  if (what == std::string_view::npos || !bytes) return std::nullopt;
  Part part{.rank = {},
            .stream = static_cast<job::LogStream>(stream),
            .what = static_cast<Part::What>(what),
            .bytes = *bytes};
  if (letter == 0) return part;
  part.rank = number_of<int>(text.substr(0, letter));
  return part.rank ? std::optional(part) : std::nullopt;
}

std::optional<Source> source_of(std::string_view text) {
  const auto attempt = number_of<int>(take_until(text, '.'));
  const std::string_view task = take_until(text, '@');
  std::string_view place = take_until(text, ',');
  const bool damage_shown = place.ends_with(kDamageShown);
  if (damage_shown) place.remove_suffix(1);
  const bool ranged = place.find('-') != std::string_view::npos;
  const auto from = number_of<uint64_t>(take_until(place, '-'));
  const auto at = ranged ? number_of<uint64_t>(place) : from;
  if (!attempt || task.empty() || !from || !at) return std::nullopt;
  if (*from > *at || *at - *from > kFarthestPending) return std::nullopt;
  Source source{.attempt = *attempt,
                .task = std::string(task),
                .from = *from,
                .at = *at,
                .damage_shown = damage_shown,
                .parts = {}};
  while (!text.empty()) {
    const auto part = part_of(take_until(text, ','));
    if (!part) return std::nullopt;
    source.parts.push_back(*part);
  }
  return source;
}

}  // namespace

const Source* LogPosition::find(int attempt, std::string_view task) const {
  for (const Source& source : sources) {
    if (source.attempt == attempt && source.task == task) return &source;
  }
  return nullptr;
}

namespace {

std::string to_text(const LogPosition& position) {
  std::string text = std::to_string(position.settled);
  for (const Source& source : position.sources) append(text, source);
  return text;
}

std::optional<LogPosition> from_text(std::string_view text) {
  const std::string_view whole = text;
  const auto settled = number_of<int>(take_until(text, ';'));
  // One more than it is counted with.
  if (!settled || *settled < 0 || *settled == INT32_MAX) return std::nullopt;
  LogPosition position{.settled = *settled, .sources = {}};
  while (!text.empty()) {
    auto source = source_of(take_until(text, ';'));
    if (!source) return std::nullopt;
    position.sources.push_back(*std::move(source));
  }
  if (to_text(position) != whole) return std::nullopt;  // not a text that to_text() writes
  return position;
}

// --- the short form
//
// A job of 1,000 tasks with eight ranks each has a text of 100 KB, and HTTP has room for 64 KB. The
// tasks of such a job are alike: each source is written as its difference from the source before it.
// Numbers are in LEB128, the whole is in base64, and kShort marks it.

constexpr char kShort = 'z';
/// A longer text is written in the short form.
constexpr size_t kLongestText = 4 << 10;
/// A task with a longer name has no short form: a few bytes must not stand for many long names.
constexpr size_t kLongestName = 255;

// The flags in the first byte of a source.
constexpr uint64_t kSameAttempt = 1;
constexpr uint64_t kHasPending = 2;  ///< `from` is not `at`
constexpr uint64_t kHasDamage = 4;
constexpr uint64_t kNextTask = 8;   ///< worker-8 after worker-7
constexpr uint64_t kSameTags = 16;  ///< the parts differ in their numbers only

// A part's tag: its stream, 4 times its `what`, and 16 times one of these.
enum class RankTag { kNone, kSame, kNext, kGiven };

/// The source before.
struct SourceBefore {
  int attempt = 0;
  std::string task;
  std::string tags;
  int64_t rank = -1;  ///< the last one
};

/// "worker-8" of "worker-7"; empty: the name does not end with a number.
std::string next_name(std::string_view name) {
  const size_t begin = name.find_last_not_of("0123456789") + 1;
  const std::string_view digits = name.substr(begin);
  const auto number = number_of<int>(digits);
  if (!number || (digits.size() > 1 && digits.front() == '0') || *number == INT32_MAX) return "";
  return std::string(name.substr(0, begin)) + std::to_string(*number + 1);
}

RankTag rank_tag(const std::optional<int>& rank, int64_t before) {
  if (!rank) return RankTag::kNone;
  if (*rank == before) return RankTag::kSame;
  return *rank == before + 1 ? RankTag::kNext : RankTag::kGiven;
}

void append_short(std::string& bytes, const Source& source, SourceBefore& before) {
  std::string tags;
  std::string numbers;
  for (const Part& part : source.parts) {
    const RankTag tag = rank_tag(part.rank, before.rank);
    tags += static_cast<char>(static_cast<int>(part.stream) + 4 * static_cast<int>(part.what) +
                              16 * static_cast<int>(tag));
    if (part.rank) before.rank = *part.rank;
    if (tag == RankTag::kGiven) base::append_varint(numbers, base::zigzag(*part.rank));
    base::append_varint(numbers, part.bytes);
  }
  const bool is_next = source.task == next_name(before.task);
  base::append_varint(bytes, (source.attempt == before.attempt ? kSameAttempt : 0) +
                                 (source.from != source.at ? kHasPending : 0) +
                                 (source.damage_shown ? kHasDamage : 0) +
                                 (is_next ? kNextTask : 0) + (tags == before.tags ? kSameTags : 0));
  if (source.attempt != before.attempt) base::append_varint(bytes, base::zigzag(source.attempt));
  if (!is_next) {
    base::append_varint(bytes, source.task.size());
    bytes += source.task;
  }
  base::append_varint(bytes, source.at);
  if (source.from != source.at) base::append_varint(bytes, source.at - source.from);
  if (tags != before.tags) {
    base::append_varint(bytes, tags.size());
    bytes += tags;
  }
  bytes += numbers;
  before.attempt = source.attempt;
  before.task = source.task;
  before.tags = std::move(tags);
}

std::string to_short(const LogPosition& position) {
  std::string bytes;
  base::append_varint(bytes, static_cast<uint64_t>(position.settled));
  SourceBefore before;
  for (const Source& source : position.sources) append_short(bytes, source, before);
  return kShort + base::to_base64_for_urls(bytes);
}

/// Reads the short form. After a failure, all that is read is zero or empty.
class ShortReader {
 public:
  explicit ShortReader(std::string_view bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }
  bool failed() const { return failed_; }

  uint64_t number() {
    const auto number = base::take_varint(rest_);
    return number ? *number : fail();
  }

  int small_number() {
    const int64_t number = base::from_zigzag(this->number());
    if (number >= INT32_MIN && number <= INT32_MAX) return static_cast<int>(number);
    return static_cast<int>(fail());
  }

  /// At most `most` bytes, behind their number.
  std::string bytes(size_t most) {
    const uint64_t size = number();
    if (size > std::min(most, rest_.size())) fail();
    if (failed_) return "";
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return std::string(taken);
  }

  uint64_t fail() {
    failed_ = true;
    rest_ = {};
    return 0;
  }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

Part read_part(ShortReader& reader, char tag, int64_t& rank_before) {
  const auto number = static_cast<uint8_t>(tag);
  Part part{.rank = {},
            .stream = static_cast<job::LogStream>(number % 4),
            .what = static_cast<Part::What>(number / 4 % 4),
            .bytes = 0};
  const auto rank = static_cast<RankTag>(number / 16);
  if (number % 4 >= kStreams.size() || rank > RankTag::kGiven) reader.fail();
  if (rank == RankTag::kGiven) rank_before = reader.small_number();
  if (rank == RankTag::kNext && ++rank_before > INT32_MAX) reader.fail();
  if (rank != RankTag::kNone) part.rank = static_cast<int>(rank_before);
  part.bytes = reader.number();
  return part;
}

Source read_source(ShortReader& reader, SourceBefore& before) {
  const uint64_t flags = reader.number();
  if ((flags & kSameAttempt) == 0) before.attempt = reader.small_number();
  before.task = (flags & kNextTask) != 0 ? next_name(before.task) : reader.bytes(kLongestName);
  Source source{.attempt = before.attempt,
                .task = before.task,
                .from = 0,
                .at = reader.number(),
                .damage_shown = (flags & kHasDamage) != 0,
                .parts = {}};
  const uint64_t pending = (flags & kHasPending) != 0 ? reader.number() : 0;
  if (before.task.empty() || before.task.size() > kLongestName || pending > source.at ||
      pending > kFarthestPending) {
    reader.fail();
  }
  source.from = source.at - pending;
  if ((flags & kSameTags) == 0) before.tags = reader.bytes(SIZE_MAX);
  for (size_t i = 0; i < before.tags.size() && !reader.failed(); ++i) {
    source.parts.push_back(read_part(reader, before.tags[i], before.rank));
  }
  return source;
}

std::optional<LogPosition> from_short(std::string_view text) {
  std::string standard(text.substr(1));
  std::replace(standard.begin(), standard.end(), '-', '+');
  std::replace(standard.begin(), standard.end(), '_', '/');
  const auto bytes = base::from_base64(standard);
  if (!bytes) return std::nullopt;
  ShortReader reader(*bytes);
  const uint64_t settled = reader.number();
  if (settled >= INT32_MAX) return std::nullopt;
  LogPosition position{.settled = static_cast<int>(settled), .sources = {}};
  SourceBefore before;
  while (!reader.at_end()) position.sources.push_back(read_source(reader, before));
  if (reader.failed()) return std::nullopt;
  if (to_string(position) != text) return std::nullopt;  // not a text that to_string() writes
  return position;
}

}  // namespace

std::string to_string(const LogPosition& position) {
  std::string text = to_text(position);
  if (text.size() <= kLongestText) return text;
  const bool has_short_form =
      std::all_of(position.sources.begin(), position.sources.end(),
                  [](const Source& source) { return source.task.size() <= kLongestName; });
  return has_short_form ? to_short(position) : text;
}

std::optional<LogPosition> log_position_of(std::string_view text) {
  return text.starts_with(kShort) ? from_short(text) : from_text(text);
}

}  // namespace muster::logs
