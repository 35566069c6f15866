#include "logs/log_position.h"

#include <cstdint>

#include "base/units.h"

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

std::string to_string(const LogPosition& position) {
  std::string text = std::to_string(position.settled);
  for (const Source& source : position.sources) append(text, source);
  return text;
}

std::optional<LogPosition> log_position_of(std::string_view text) {
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
  if (to_string(position) != whole) return std::nullopt;  // not a text that to_string() writes
  return position;
}

}  // namespace muster::logs
