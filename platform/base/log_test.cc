#include "base/log.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace muster::base {
namespace {

using std::chrono_literals::operator""ms;

constexpr Time kNoon{std::chrono::seconds{1'700'000'000}};

std::string text_of(std::string_view text, const LogFields& fields = {}) {
  return log_line(LogFormat::kText, kNoon, "info", text, fields);
}

std::string json_of(std::string_view text, const LogFields& fields = {}) {
  return log_line(LogFormat::kJson, kNoon, "info", text, fields);
}

TEST(LogLine, BeginsWithTimeAndLevel) {
  EXPECT_EQ(log_line(LogFormat::kText, kNoon + 12ms, "warning", "the disk is full", {}),
            "2023-11-14T22:13:20.012Z warning the disk is full");
  EXPECT_EQ(log_line(LogFormat::kJson, kNoon, "error", "the disk is full", {}),
            R"({"time":"2023-11-14T22:13:20.000Z","level":"error","text":"the disk is full"})");
}

TEST(LogLine, InPlainFormatIsTheTextAndMarksAWarning) {
  const LogFields fields{{"path", "/v1/jobs"}};

  EXPECT_EQ(log_line(LogFormat::kPlain, kNoon, "warning", "the disk is full", fields),
            "warning: the disk is full");
  EXPECT_EQ(log_line(LogFormat::kPlain, kNoon, "error", "no\nserver", fields), "no; server");
}

TEST(LogLine, HasTheLinesOfATextAsClauses) {
  EXPECT_TRUE(text_of("'muster.yaml' has 2 faults\n  line 4: bad\n\n  line 5: worse\n")
                  .ends_with(" info 'muster.yaml' has 2 faults; line 4: bad; line 5: worse"));
}

TEST(LogLine, HasItsFieldsInOrder) {
  const LogFields fields{{"path", "/v1/jobs"}, {"status", 200}, {"ms", 1.25}};

  EXPECT_EQ(text_of("request", fields),
            "2023-11-14T22:13:20.000Z info request path=/v1/jobs status=200 ms=1.250");
  EXPECT_EQ(json_of("request", fields),
            R"({"time":"2023-11-14T22:13:20.000Z","level":"info","text":"request",)"
            R"("path":"/v1/jobs","status":200,"ms":1.25})");
}

TEST(LogLine, QuotesAValueThatIsNotASingleWord) {
  EXPECT_TRUE(text_of("t", {{"path", "/a b"}}).ends_with(R"( path="/a b")"));
  EXPECT_TRUE(text_of("t", {{"path", "a\"=b"}}).ends_with(R"( path="a\"=b")"));
  EXPECT_TRUE(text_of("t", {{"path", ""}}).ends_with(R"( path="")"));
}

TEST(LogLine, IsAlwaysASingleLine) {
  const std::string evil = "x\n2026-01-31T00:00:00.000Z info forged\r\x1b[2J\x7f\xff";
  for (const std::string& line :
       {text_of(evil, {{"path", evil}}), json_of(evil, {{"path", evil}})}) {
    for (const char letter : line) EXPECT_GE(static_cast<unsigned char>(letter), ' ') << line;
    EXPECT_EQ(line.find('\x7f'), std::string::npos) << line;
  }
}

TEST(LogLine, IsWrittenToStandardErrorInTheChosenFormat) {
  testing::internal::CaptureStderr();
  log_info("in words", {{"n", 1}});
  set_log_format(LogFormat::kJson);
  log_warning("as JSON", {{"n", 2}});
  set_log_format(LogFormat::kText);
  const std::string written = testing::internal::GetCapturedStderr();

  EXPECT_NE(written.find(" info in words n=1\n"), std::string::npos) << written;
  EXPECT_NE(written.find(R"("level":"warning","text":"as JSON","n":2})"), std::string::npos)
      << written;
}

TEST(LogLine, OfSeveralThreadsIsNeverMixed) {
  constexpr int kThreads = 4;
  constexpr int kLines = 50;
  const std::string text(3000, 'x');
  testing::internal::CaptureStderr();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int line = 0; line < kLines; ++line) log_info(text, {{"n", line}});
    });
  }
  for (std::thread& each : threads) each.join();
  std::istringstream written(testing::internal::GetCapturedStderr());

  int count = 0;
  for (std::string line; std::getline(written, line); ++count) {
    EXPECT_NE(line.find(" info " + text + " n="), std::string::npos) << line;
  }
  EXPECT_EQ(count, kThreads * kLines);
}

}  // namespace
}  // namespace muster::base
