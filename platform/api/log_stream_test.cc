#include "api/log_stream.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "api/test_values.h"

namespace muster::api {
namespace {

using job::LogBatch;
using job::LogRecord;

LogBatch::Source source_of(job::LogSource source) {
  return std::make_shared<const job::LogSource>(std::move(source));
}

LogBatch some_batch() {
  const auto rank =
      source_of({.task = "worker-1", .attempt = 2, .host = "dist-worker-1", .rank = 0});
  const auto notice = source_of({.task = std::string(300, 't'),
                                 .attempt = 0,
                                 .host = "",
                                 .rank = {},
                                 .stream = job::LogStream::kNotice});
  LogBatch batch;
  batch.add(rank, kTime, "one\ntwo\n");
  batch.add(notice, kTime - std::chrono::hours(5), "a notice\n");
  batch.add(rank, kTime + std::chrono::nanoseconds(1), std::string("\0\xff piece", 8));
  batch.add(rank, base::Time{}, "\n");
  return batch;
}

/// The calls of a decoder, in order.
struct DecodedStream {
  std::vector<LogRecord> records;
  std::vector<std::string> words;

  LogStreamDecoder::Handlers handlers() {
    return {.on_record =
                [this](const LogRecord& record) {
                  records.push_back(record);
                  return true;
                },
            .on_place =
                [this](std::string_view place) {
                  words.push_back("place " + std::string(place));
                  return true;
                },
            .on_end =
                [this](std::string_view job) {
                  words.push_back("end " + std::string(job));
                  return true;
                }};
  }
};

std::string some_stream() {
  std::string text;
  append_log_batch(text, some_batch());
  append_log_frame(text, LogFrameKind::kPing);
  append_log_frame(text, LogFrameKind::kPlace, "1;2.worker-1@100");
  append_log_batch(text, some_batch());
  append_log_frame(text, LogFrameKind::kEnd, "{}");
  return text;
}

TEST(LogStreamFrames, ReadBackUnchangedHoweverTheyAreSplit) {
  std::vector<LogRecord> expected = job::records_of(some_batch());
  for (const LogRecord& record : job::records_of(some_batch())) expected.push_back(record);
  const std::string text = some_stream();
  std::mt19937 random(3);  // NOLINT: the same each time
  for (const size_t most : {size_t{1}, size_t{7}, size_t{100}, text.size()}) {
    DecodedStream decoded;
    LogStreamDecoder decoder(decoded.handlers());
    for (size_t at = 0; at < text.size();) {
      const size_t size = std::min(text.size() - at, 1 + random() % most);
      const auto more = decoder.put(std::string_view(text).substr(at, size));
      ASSERT_TRUE(more && *more);
      at += size;
    }
    EXPECT_TRUE(decoded.records == expected);  // too large to print
    EXPECT_EQ(decoded.words, (std::vector<std::string>{"place 1;2.worker-1@100", "end {}"}));
  }
}

TEST(LogStreamFrames, AreNotWrittenForAnEmptyBatch) {
  std::string text;
  append_log_batch(text, {});
  EXPECT_TRUE(text.empty());
}

TEST(LogStreamFrames, StopWhenAHandlerReturnsFalse) {
  int records = 0;
  LogStreamDecoder decoder({.on_record = [&](const LogRecord&) { return ++records < 2; },
                            .on_place = [](std::string_view) { return true; },
                            .on_end = [](std::string_view) { return true; }});
  const auto more = decoder.put(some_stream());

  ASSERT_TRUE(more);
  EXPECT_FALSE(*more);
  EXPECT_EQ(records, 2);
}

TEST(LogStreamFrames, AreRefusedIfTheyAreInvalid) {
  std::string wrong_source;
  append_log_batch(wrong_source, some_batch());
  wrong_source[5] = 1;  // there are two sources
  const std::vector<std::string> wrong{
      base::encode_frame('\x09', ""),                        // an unknown kind
      std::string("\x01\xff\xff\xff\xff", 5),                // too large
      base::encode_frame('\x01', "\x05"),                    // more sources than there are
      base::encode_frame('\x01', std::string("\0\7", 2)),    // an incomplete run
      base::encode_frame('\x01', std::string("\0\0\1x", 4))  // an unknown source
  };
  for (const std::string& text : wrong) {
    DecodedStream decoded;
    const auto more = LogStreamDecoder(decoded.handlers()).put(text);
    EXPECT_FALSE(more) << testing::PrintToString(text);
  }
}

TEST(LogStreamFrames, NeverCrashWhateverTheyContain) {
  std::mt19937 random(5);  // NOLINT: the same each time
  size_t refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = some_stream();
    for (unsigned i = random() % 4 + 1; i > 0; --i) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    DecodedStream decoded;
    if (!LogStreamDecoder(decoded.handlers()).put(text)) ++refused;
  }
  EXPECT_GT(refused, 0U);
}

}  // namespace
}  // namespace muster::api
