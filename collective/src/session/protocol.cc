#include "session/protocol.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <utility>

#include "transport/bytes.h"

namespace muster::collective::session {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

std::string reduction_of(const Call& call) {
  std::string text = std::to_string(call.count) + " " +
                     std::string(muster::collective::to_string(call.type)) + ", " +
                     std::string(muster::collective::to_string(call.reduction.op));
  if (call.reduction.prescale != 1) text += ", prescale " + number(call.reduction.prescale);
  if (call.reduction.postscale != 1) text += ", postscale " + number(call.reduction.postscale);
  return text;
}

// The first lengths are shown, since they may be the only difference between two ranks.
std::string list_of(const std::vector<std::uint64_t>& lengths) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < lengths.size() && i < kShown; ++i) {
    text += (i == 0 ? "" : " ") + std::to_string(lengths[i]);
  }
  return lengths.size() > kShown ? text + " ..." : text;
}

// A shape, or the part of it around `place`, where two shapes begin to differ.
std::string excerpt(const std::string& shape, std::size_t place) {
  constexpr std::size_t kBefore = 60;
  constexpr std::size_t kShown = 160;
  if (shape.size() <= kShown) return shape;
  const std::size_t from = std::min(place - std::min(place, kBefore), shape.size() - kShown);
  return (from > 0 ? "..." : "") + shape.substr(from, kShown) +
         (from + kShown < shape.size() ? "..." : "");
}

// In all_gather and all_to_all each rank chooses its lengths.
bool same_counts(const Request& one, const Request& other) {
  if (one.call != other.call) return false;
  const bool chosen = one.call.kind == CallKind::kAllGather || one.call.kind == CallKind::kAllToAll;
  return chosen || one.lengths == other.lengths;
}

// The texts that show how two requests of the same kind differ.
std::pair<std::string, std::string> differences(const Request& one, const Request& other) {
  if (one.shape == other.shape) return {to_string(one), to_string(other)};
  const auto place = static_cast<std::size_t>(std::ranges::mismatch(one.shape, other.shape).in1 -
                                              one.shape.begin());
  const bool shapes_alone = same_counts(one, other);
  const auto describe = [&](const Request& request) {
    if (request.shape.empty()) return to_string(request) + " without a shape";
    const std::string shape = excerpt(request.shape, place);
    return shapes_alone ? shape : shape + " (" + to_string(request) + ")";
  };
  return {describe(one), describe(other)};
}

// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace

std::string bounded_shape(std::string_view shape) {
  if (shape.size() <= kLongestShape) return std::string(shape);
  constexpr std::size_t kKept = 4000;
  char rest[64];
  std::snprintf(rest, sizeof rest, "... and %zu more bytes, %016llx", shape.size() - kKept,
                static_cast<unsigned long long>(hash_of(shape.substr(kKept))));
  return std::string(shape.substr(0, kKept)) + rest;
}

std::uint64_t bytes_of(const Request& request) {
  switch (request.call.kind) {
    case CallKind::kAllReduce:
    case CallKind::kReduceScatter:
    case CallKind::kReduce:
      return request.call.count * size_of(request.call.type);
    case CallKind::kBroadcast:
      return request.call.count;
    case CallKind::kAllGather:
    case CallKind::kAllToAll:
      return std::accumulate(request.lengths.begin(), request.lengths.end(), std::uint64_t{0});
    case CallKind::kBarrier:
    case CallKind::kSend:
      break;
  }
  return 0;
}

bool agree(const Request& one, const Request& other) {
  return same_counts(one, other) && one.shape == other.shape;
}

std::string_view to_string(CallKind kind) {
  switch (kind) {
    case CallKind::kAllReduce:
      return "all_reduce";
    case CallKind::kBroadcast:
      return "broadcast";
    case CallKind::kAllGather:
      return "all_gather";
    case CallKind::kBarrier:
      return "barrier";
    case CallKind::kReduceScatter:
      return "reduce_scatter";
    case CallKind::kReduce:
      return "reduce";
    case CallKind::kAllToAll:
      return "all_to_all";
    case CallKind::kSend:
      return "send";
  }
  return "an unknown collective";
}

std::string to_string(const Request& request) {
  const Call& call = request.call;
  switch (call.kind) {
    case CallKind::kAllReduce:
      if (request.lengths.empty()) return reduction_of(call);
      return std::to_string(request.lengths.size()) + " tensors (" + list_of(request.lengths) +
             ") of together " + reduction_of(call);
    case CallKind::kReduceScatter:
      return reduction_of(call) + ", parts of " + list_of(request.lengths);
    case CallKind::kReduce:
      return reduction_of(call) + " to rank " + std::to_string(call.root);
    case CallKind::kBroadcast:
      return std::to_string(call.count) + " bytes from rank " + std::to_string(call.root);
    case CallKind::kAllGather:
    case CallKind::kAllToAll:
      return std::to_string(bytes_of(request)) + " bytes";
    case CallKind::kBarrier:
    case CallKind::kSend:
      break;
  }
  return "nothing";
}

Error mismatch(std::string_view name, const RankRequest& first, const RankRequest& second) {
  const std::string quoted = "'" + std::string(name) + "': ";
  const CallKind one = first.request.call.kind;
  const CallKind other = second.request.call.kind;
  Error error{.code = ErrorCode::kMismatch,
              .advice = "every rank must hand over a name with the same operation"};
  if (one == other) {
    const auto [mine, theirs] = differences(first.request, second.request);
    error.message = std::string(to_string(one)) + " " + quoted + first.who + " hands over " + mine +
                    "; " + second.who + " " + theirs;
    return error;
  }
  const auto with_kind = [](const Request& request) {
    const std::string kind(to_string(request.call.kind));
    return request.call.kind == CallKind::kBarrier ? kind : kind + " of " + to_string(request);
  };
  error.message = quoted + first.who + " hands over " + with_kind(first.request) + "; " +
                  second.who + " " + with_kind(second.request);
  return error;
}

namespace {

enum class HandOverKind : std::uint8_t { kNew = 1, kAgain = 2, kJoin = 3, kLeave = 4, kLinks = 5 };
enum class Kind : std::uint8_t { kBatch = 1, kForget = 2, kLeft = 3, kAllJoined = 4 };
constexpr std::uint8_t kHasNews = 1;
constexpr std::uint8_t kHasError = 2;

// An upper estimate of the bytes of one tensor's news, besides the name.
constexpr std::size_t kAboutNews = 96;

// Not inlined: gcc 12 warns of an overflow if it sees an empty vector grow by one byte.
[[gnu::noinline]] void begin(ByteWriter& writer, std::uint8_t kind) {
  writer.number(kind);
}

ByteWriter message_of(HandOverKind kind, std::size_t bytes) {
  ByteWriter writer(bytes);
  begin(writer, static_cast<std::uint8_t>(kind));
  return writer;
}

ByteWriter record_of(Kind kind, std::size_t bytes = 0) {
  ByteWriter writer(bytes);
  begin(writer, static_cast<std::uint8_t>(kind));
  return writer;
}

template <typename T>
void write_list(ByteWriter& writer, const std::vector<T>& list) {
  writer.number(static_cast<std::uint32_t>(list.size())).raw(std::as_bytes(std::span(list)));
}

// Stops at the end of the message, whatever length the message announces.
template <typename T>
std::vector<T> read_list(ByteReader& reader) {
  const auto count = reader.number<std::uint32_t>();
  std::vector<T> list;
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) list.push_back(reader.number<T>());
  return list;
}

void write_request(ByteWriter& writer, std::string_view name, const Request& request) {
  writer.text(name).raw(collective::encode(request.call));
  write_list(writer, request.lengths);
}

bool read_request(ByteReader& reader, std::string& name, Request& request) {
  name = reader.text();
  const ByteView header = reader.raw(kCallHeaderBytes);
  if (!reader.ok()) return false;
  CallHeader copy;
  std::ranges::copy(header, copy.begin());
  const std::optional<Call> call = decode(copy);
  if (!call) return false;
  request.call = *call;
  request.lengths = read_list<std::uint64_t>(reader);
  return reader.ok();
}

void write_news(ByteWriter& writer, const Agreed& agreed) {
  write_request(writer, agreed.name, agreed.request);
  write_list(writer, agreed.gathered);
  if (agreed.error) write_error(writer, *agreed.error);
}

std::shared_ptr<const Agreed> read_news(ByteReader& reader, bool has_error) {
  auto agreed = std::make_shared<Agreed>();
  if (!read_request(reader, agreed->name, agreed->request)) return nullptr;
  agreed->gathered = read_list<std::uint64_t>(reader);
  if (has_error) agreed->error = read_error(reader);
  return agreed;
}

Bytes encode_batch(const Batch& batch) {
  ByteWriter writer = record_of(Kind::kBatch, batch.entries.size() * 2 * kAboutNews);
  writer.number(static_cast<std::uint32_t>(batch.entries.size()));
  for (const Entry& entry : batch.entries) {
    std::uint8_t flags = 0;
    if (entry.news) flags = entry.news->error ? kHasNews | kHasError : kHasNews;
    writer.number(entry.id).number(static_cast<std::uint16_t>(entry.last)).number(flags);
    if (entry.news) write_news(writer, *entry.news);
  }
  return writer.take();
}

Bytes bare_message(HandOverKind kind) {
  return Bytes(1, std::byte{static_cast<std::uint8_t>(kind)});
}

}  // namespace

// FNV-1a.
std::uint32_t tally_of(std::string_view name) {
  std::uint32_t hash = 0x811c9dc5;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x01000193;
  return hash;
}

Bytes encode_new(std::string_view name, const Request& request) {
  ByteWriter writer =
      message_of(HandOverKind::kNew, kAboutNews + name.size() + request.shape.size());
  write_request(writer, name, request);
  return writer.text(request.shape).take();
}

// On the path of the smallest operation: one allocation.
Bytes encode(Again again) {
  Bytes message(1 + sizeof again.id, std::byte{static_cast<std::uint8_t>(HandOverKind::kAgain)});
  std::memcpy(message.data() + 1, &again.id, sizeof again.id);
  return message;
}

Bytes encode(Join) {
  return bare_message(HandOverKind::kJoin);
}

Bytes encode(Leave) {
  return bare_message(HandOverKind::kLeave);
}

Bytes encode(const LinkReport& report) {
  ByteWriter writer = message_of(HandOverKind::kLinks, 16 + report.links.size() * 20);
  writer.number(static_cast<std::uint64_t>(report.window.count()));
  writer.number(static_cast<std::uint32_t>(report.links.size()));
  for (const LinkUse& link : report.links) {
    writer.number(static_cast<std::uint32_t>(link.to)).number(link.bytes);
    writer.number(static_cast<std::uint64_t>(link.busy.count()));
  }
  return writer.take();
}

namespace {

// Stops at the end of the message, whatever number of links it announces.
LinkReport read_links(ByteReader& reader) {
  const auto microseconds = [&] {
    return std::chrono::microseconds(static_cast<std::int64_t>(reader.number<std::uint64_t>()));
  };
  LinkReport report{.window = microseconds()};
  const auto count = reader.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    LinkUse& link = report.links.emplace_back();
    link.to = static_cast<int>(reader.number<std::uint32_t>());
    link.bytes = reader.number<std::uint64_t>();
    link.busy = microseconds();
  }
  return report;
}

}  // namespace

std::optional<HandOver> decode_hand_over(ByteView message) {
  ByteReader reader(message);
  std::optional<HandOver> hand_over;
  switch (HandOverKind{reader.number<std::uint8_t>()}) {
    case HandOverKind::kNew: {
      New news;
      if (!read_request(reader, news.name, news.request)) return std::nullopt;
      news.request.shape = reader.text();
      if (news.name.size() > kLongestName || news.request.shape.size() > kLongestShape) {
        return std::nullopt;
      }
      hand_over = std::move(news);
      break;
    }
    case HandOverKind::kAgain:
      hand_over = Again{reader.number<std::uint32_t>()};
      break;
    case HandOverKind::kJoin:
      hand_over = Join{};
      break;
    case HandOverKind::kLeave:
      hand_over = Leave{};
      break;
    case HandOverKind::kLinks:
      hand_over = read_links(reader);
      break;
  }
  if (!reader.ok() || !reader.at_end()) return std::nullopt;
  return hand_over;
}

Bytes encode(const Record& record) {
  if (const auto* batch = std::get_if<Batch>(&record)) return encode_batch(*batch);
  if (const auto* forget = std::get_if<Forget>(&record)) {
    ByteWriter writer = record_of(Kind::kForget);
    write_list(writer, forget->ids);
    return writer.take();
  }
  if (const auto* left = std::get_if<Left>(&record)) {
    return record_of(Kind::kLeft).number(static_cast<std::uint32_t>(left->rank)).take();
  }
  const int last = std::get<AllJoined>(record).last;
  return record_of(Kind::kAllJoined).number(static_cast<std::uint32_t>(last)).take();
}

bool is_batch(ByteView record) {
  return !record.empty() && record[0] == std::byte{static_cast<std::uint8_t>(Kind::kBatch)};
}

bool decode_batch(ByteView record, Batch& batch) {
  ByteReader reader(record);
  reader.raw(1);
  const auto count = reader.number<std::uint32_t>();
  batch.entries.clear();
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    Entry entry;
    entry.id = reader.number<std::uint32_t>();
    entry.last = reader.number<std::uint16_t>();
    const auto flags = reader.number<std::uint8_t>();
    if ((flags & kHasNews) != 0) {
      entry.news = read_news(reader, (flags & kHasError) != 0);
      if (!entry.news) return false;
    }
    batch.entries.push_back(std::move(entry));
  }
  return reader.ok() && reader.at_end();
}

std::optional<Record> decode_record(ByteView record) {
  ByteReader reader(record);
  std::optional<Record> decoded;
  switch (Kind{reader.number<std::uint8_t>()}) {
    case Kind::kBatch: {
      Batch batch;
      if (!decode_batch(record, batch)) return std::nullopt;
      return batch;
    }
    case Kind::kForget:
      decoded = Forget{read_list<std::uint32_t>(reader)};
      break;
    case Kind::kLeft:
      decoded = Left{static_cast<int>(reader.number<std::uint32_t>())};
      break;
    case Kind::kAllJoined:
      decoded = AllJoined{static_cast<int>(reader.number<std::uint32_t>())};
      break;
  }
  if (!reader.ok() || !reader.at_end()) return std::nullopt;
  return decoded;
}

}  // namespace muster::collective::session
