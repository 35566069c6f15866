#include "session/protocol.h"

#include <algorithm>
#include <cstring>

#include "transport/error_bytes.h"

namespace muster::collective::session {
namespace {

enum class Said : std::uint8_t { kNew = 1, kAgain = 2, kJoin = 3, kLeave = 4 };
enum class Kind : std::uint8_t { kBatch = 1, kForget = 2, kLeft = 3, kAllJoined = 4 };
constexpr std::uint8_t kHasNews = 1;
constexpr std::uint8_t kHasError = 2;

// What the news of one tensor take beside the name, or a little more.
constexpr std::size_t kAboutNews = 96;

// Not inlined: gcc 12 warns of an overflow where it sees an empty vector grow by one byte.
[[gnu::noinline]] void begin(ByteWriter& writer, std::uint8_t kind) {
  writer.number(kind);
}

ByteWriter message_of(Said said, std::size_t bytes) {
  ByteWriter writer(bytes);
  begin(writer, static_cast<std::uint8_t>(said));
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

// Stops at the end of the message, whatever length it claims.
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

Bytes said(Said what) {
  return Bytes(1, std::byte{static_cast<std::uint8_t>(what)});
}

}  // namespace

// FNV-1a.
std::uint32_t tally_of(std::string_view name) {
  std::uint32_t hash = 0x811c9dc5;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x01000193;
  return hash;
}

Bytes encode_new(std::string_view name, const Request& request) {
  ByteWriter writer = message_of(Said::kNew, kAboutNews + name.size() + request.shape.size());
  write_request(writer, name, request);
  return writer.text(request.shape).take();
}

// On the way of the smallest operation: one allocation.
Bytes encode(Again again) {
  Bytes message(1 + sizeof again.id, std::byte{static_cast<std::uint8_t>(Said::kAgain)});
  std::memcpy(message.data() + 1, &again.id, sizeof again.id);
  return message;
}

Bytes encode(Join) {
  return said(Said::kJoin);
}

Bytes encode(Leave) {
  return said(Said::kLeave);
}

std::optional<HandOver> decode_hand_over(ByteView message) {
  ByteReader reader(message);
  std::optional<HandOver> hand_over;
  switch (Said{reader.number<std::uint8_t>()}) {
    case Said::kNew: {
      New news;
      if (!read_request(reader, news.name, news.request)) return std::nullopt;
      news.request.shape = reader.text();
      if (news.name.size() > kLongestName || news.request.shape.size() > kLongestShape) {
        return std::nullopt;
      }
      hand_over = std::move(news);
      break;
    }
    case Said::kAgain:
      hand_over = Again{reader.number<std::uint32_t>()};
      break;
    case Said::kJoin:
      hand_over = Join{};
      break;
    case Said::kLeave:
      hand_over = Leave{};
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
