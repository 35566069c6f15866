#include "api/log_stream.h"

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "base/varint.h"

namespace muster::api {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

void append_text(std::string& out, std::string_view text) {
  base::append_varint(out, text.size());
  out += text;
}

void append_source(std::string& out, const job::LogSource& source) {
  base::append_varint(out, static_cast<uint64_t>(source.attempt));
  base::append_varint(out, source.rank ? static_cast<uint64_t>(*source.rank) + 1 : 0);
  base::append_varint(out, static_cast<uint64_t>(source.stream));
  append_text(out, source.task);
  append_text(out, source.host);
}

/// Reads the fields of a frame. A read past its end makes the whole frame invalid.
class FrameReader {
 public:
  explicit FrameReader(std::string_view rest) : rest_(rest) {}

  bool at_end() const { return rest_.empty() || bad_; }
  bool bad() const { return bad_; }

  uint64_t number() {
    const auto number = base::take_varint(rest_);
    bad_ = bad_ || !number;
    return number.value_or(0);
  }

  /// At most `most`; otherwise the frame is invalid.
  uint64_t number_up_to(uint64_t most) {
    const uint64_t read = number();
    bad_ = bad_ || read > most;
    return bad_ ? 0 : read;
  }

  std::string_view text() {
    const uint64_t size = number_up_to(rest_.size());
    bad_ = bad_ || size > rest_.size();
    if (bad_) return {};
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return text;
  }

 private:
  std::string_view rest_;
  bool bad_ = false;
};

job::LogRecord read_source(FrameReader& reader) {
  constexpr uint64_t kMost = std::numeric_limits<int>::max();
  job::LogRecord record;
  record.attempt = static_cast<int>(reader.number_up_to(kMost));
  const auto rank = static_cast<int>(reader.number_up_to(kMost));
  if (rank > 0) record.rank = rank - 1;
  record.stream = static_cast<job::LogStream>(
      reader.number_up_to(static_cast<uint64_t>(job::LogStream::kNotice)));
  record.task = reader.text();
  record.host = reader.text();
  return record;
}

Error no_log_stream() {
  return {.code = ErrorCode::kInternal,
          .what = "the server's stream of logs cannot be read",
          .advice = "check that client and server have the same version"};
}

}  // namespace

void append_log_batch(std::string& out, const job::LogBatch& batch) {
  if (batch.empty()) return;
  constexpr size_t kMostOfRun = 24;
  constexpr size_t kMostOfSource = 600;
  out.reserve(out.size() + base::kFrameHead + batch.bytes().size() +
              batch.runs().size() * kMostOfRun + batch.sources().size() * kMostOfSource);
  const size_t begin = base::begin_frame(out, static_cast<char>(LogFrameKind::kBatch));
  base::append_varint(out, batch.sources().size());
  for (const auto& source : batch.sources()) append_source(out, *source);
  int64_t last = 0;
  std::string_view rest = batch.bytes();
  for (const job::LogBatch::Run& run : batch.runs()) {
    const int64_t time = run.time.time_since_epoch().count();
    base::append_varint(out, run.source);
    base::append_varint(out, base::zigzag(static_cast<int64_t>(static_cast<uint64_t>(time) -
                                                               static_cast<uint64_t>(last))));
    append_text(out, rest.substr(0, run.size));
    rest.remove_prefix(run.size);
    last = time;
  }
  base::end_frame(out, begin);
}

void append_log_frame(std::string& out, LogFrameKind kind, std::string_view content) {
  base::append_frame(out, static_cast<char>(kind), content);
}

Result<bool> LogStreamDecoder::put(std::string_view piece) {
  // Most frames arrive in several pieces; complete frames are not copied.
  if (!partial_.empty()) {
    partial_ += piece;
    piece = partial_;
  }
  size_t taken = 0;
  while (true) {
    const auto frame = base::first_frame(piece.substr(taken), kMostLogFrame);
    if (!frame) return no_log_stream();
    if (!*frame) break;
    MUSTER_TRY(const bool more, take(**frame));
    if (!more) return false;
    taken += (*frame)->size();
  }
  if (partial_.empty()) {
    partial_ = piece.substr(taken);
  } else {
    partial_.erase(0, taken);
  }
  return true;
}

Result<bool> LogStreamDecoder::take(const base::Frame& frame) {
  const std::string_view content = frame.bytes;
  switch (static_cast<LogFrameKind>(frame.tag)) {
    case LogFrameKind::kBatch:
      return take_batch(content);
    case LogFrameKind::kPlace:
      return handlers_.on_place(content);
    case LogFrameKind::kEnd:
      return handlers_.on_end(content);
    case LogFrameKind::kPing:
      return true;
  }
  return no_log_stream();
}

Result<bool> LogStreamDecoder::take_batch(std::string_view content) {
  FrameReader reader(content);
  const uint64_t sources = reader.number_up_to(content.size());
  records_.clear();
  for (uint64_t i = 0; i < sources && !reader.bad(); ++i) records_.push_back(read_source(reader));
  uint64_t time = 0;
  while (!reader.at_end()) {
    const uint64_t source = reader.number();
    time += static_cast<uint64_t>(base::from_zigzag(reader.number()));
    const std::string_view run = reader.text();
    if (reader.bad() || source >= records_.size()) return no_log_stream();
    job::LogRecord& record = records_[source];
    record.time = base::Time(std::chrono::nanoseconds(static_cast<int64_t>(time)));
    if (!job::for_each_line(run, record, handlers_.on_record)) return false;
  }
  if (reader.bad()) return no_log_stream();
  return true;
}

}  // namespace muster::api
