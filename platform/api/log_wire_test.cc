#include <gtest/gtest.h>

#include <random>

#include "api/test_values.h"
#include "api/wire.h"

namespace muster::api {
namespace {

using job::LogRecord;
using job::LogStream;

/// The same JSON in a form that needs the slow path.
std::string spaced(std::string text) {
  return text.insert(1, " ");
}

void expect_same_back(const LogRecord& record) {
  const std::string text = log_record_to_json(record);
  for (const std::string& form : {text, spaced(text)}) {
    const auto read = log_record_from_json(form);
    ASSERT_TRUE(read) << form << "\n" << read.error().to_string();
    EXPECT_EQ(*read, record) << form;
  }
}

TEST(LogWire, HasTheDocumentedShape) {
  EXPECT_EQ(log_record_to_json(full_record()),
            "{\"time\":\"2026-01-01T00:00:00.123456789Z\",\"task\":\"worker-0\","
            "\"attempt\":2,\"host\":\"dist-worker-0\",\"rank\":3,\"stream\":\"error\","
            "\"text\":\"loss \\\"0.5\\\"\\t\\u001b[31mréd\\\\\",\"continues\":true}");
  EXPECT_EQ(log_record_to_json({.time = time_at(0), .task = "main", .text = "\xFF"}),
            R"({"time":"1970-01-01T00:00:00.000000000Z","task":"main","host":"",)"
            R"("stream":"output","base64":"/w=="})");
}

TEST(LogWire, ReadsBackUnchanged) {
  expect_same_back(full_record());
  LogRecord record = full_record();
  for (const int rank : {0, -1, 10, INT32_MAX, INT32_MIN}) {
    record.rank = rank;
    expect_same_back(record);
  }
  record.rank.reset();
  for (const auto stream : {LogStream::kOutput, LogStream::kError, LogStream::kNotice}) {
    record.stream = stream;
    expect_same_back(record);
  }
  record.continues = false;
  record.host = kBinary;
  expect_same_back(record);
}

TEST(LogWire, KeepsEveryByteOfALine) {
  LogRecord record = full_record();
  for (int byte = 0; byte < 256; ++byte) {
    record.text = "a" + std::string(1, static_cast<char>(byte)) + "b";
    expect_same_back(record);
  }
  record.text.clear();
  expect_same_back(record);
  record.text = std::string(1 << 20, '"');
  expect_same_back(record);
}

TEST(LogWire, IsOneLineWhateverTheText) {
  LogRecord record = full_record();
  record.text = "a\nb\rc\x0B\x85";

  EXPECT_EQ(log_record_to_json(record).find_first_of("\r\n"), std::string::npos);
}

TEST(LogWire, AcceptsEveryEscapeOfJson) {
  const auto text_of = [](const std::string& escaped) {
    return log_record_from_json(
               R"({"time":"1970-01-01T00:00:00.000000000Z","task":"","host":"","stream":"output",)"
               R"("text":")" +
               escaped + "\"}")
        ->text;
  };

  EXPECT_EQ(text_of(R"(\"\\\/\b\f\n\r\t)"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(text_of(R"(\u0041\u00e9\u6f22\ud83d\ude80)"), "Aé漢🚀");
}

TEST(LogWire, ReportsFaults) {
  const auto read = log_record_from_json(R"({"task":"main","stream":"stdout","rank":"0"})");

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().to_string(),
            "the log record has 4 faults\n"
            "  time: is missing\n"
            "  rank: must be a whole number, not text\n"
            "  stream: 'stdout' is invalid: expected one of output, error, notice\n"
            "  text: is missing");
}

// The fast path may refuse JSON that the slow path accepts, but must never accept JSON that the
// slow path refuses, nor read it differently.
TEST(LogWire, FastAndSlowPathAgree) {
  constexpr std::string_view kAlphabet = "\"\\,:{}[]0-e.u\n\x80";
  std::mt19937 random(1);
  const std::string whole = log_record_to_json(full_record());
  for (int round = 0; round < 20'000; ++round) {
    std::string text = whole;
    const size_t at = 1 + random() % (text.size() - 1);
    switch (random() % 3) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, random() % 4);
        break;
      default:
        text.insert(at, 1, kAlphabet[random() % kAlphabet.size()]);
    }

    const auto fast = log_record_from_json(text);
    const auto slow = log_record_from_json(spaced(text));

    ASSERT_EQ(fast.ok(), slow.ok()) << text;
    ASSERT_TRUE(!fast || *fast == *slow) << text;
  }
}

}  // namespace
}  // namespace muster::api
