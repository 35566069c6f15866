// Behaviour on a terminal: questions, and a pager.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "base/files.h"
#include "cli/common/test_terminal.h"
#include "cli/connection/connection.h"
#include "dialects/gradient/commands.h"
#include "dialects/gradient/gradient_fixture.h"

namespace muster::dialects::gradient {

namespace {

class OnTerminal : public GradientCli {
 protected:
  /// Types answers ahead.
  void type_on_keyboard(const std::string& text) {
    terminal_.type(text);
    ::dup2(terminal_.fd(), STDIN_FILENO);
  }

  /// Runs `act` with the terminal as standard output; returns the terminal's output.
  std::string shown_by(const std::function<void()>& act) {
    const base::UniqueFd before(::dup(STDOUT_FILENO));
    ::dup2(terminal_.fd(), STDOUT_FILENO);
    act();
    ::dup2(before.get(), STDOUT_FILENO);
    return terminal_.output();
  }

  cli::TestTerminal terminal_{{.ws_row = 6, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0}};
};

AsciiTable table_of(int rows) {
  AsciiTable table;
  for (int i = 0; i < rows; ++i) table.add({std::to_string(i)});
  return table;
}

TEST_F(OnTerminal, AListingContinuesAsLongAsTheUserConfirms) {
  std::vector<job::Job> jobs;
  for (int i = 0; i < 6; ++i) {
    jobs.push_back(job_at(i, "job-" + std::to_string(i), job::Phase::kRunning));
  }
  serve({.jobs = jobs});
  type_on_keyboard("y\nn\n");

  const cli::Outcome outcome = gradient({"experiments", "list", "--limit", "2"});

  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "Do you want to continue? [y/N]: Do you want to continue? [y/N]: ");
  EXPECT_NE(outcome.out.find("| job-5 |"), std::string::npos);
  EXPECT_NE(outcome.out.find("| job-2 |"), std::string::npos);
  EXPECT_EQ(outcome.out.find("| job-1 |"), std::string::npos);
  EXPECT_EQ(count_of("GET /v1/jobs"), 2);
}

TEST_F(OnTerminal, AnInterruptedQuestionHasACodeOfItsOwn) {
  serve({.jobs = {job_at(1, "a", job::Phase::kRunning), job_at(2, "b", job::Phase::kRunning)}});
  type_on_keyboard("\x04");  // the end of the input

  EXPECT_EQ(gradient({"experiments", "list", "--limit", "1"}).code, 130);
}

TEST_F(OnTerminal, ATableOfMetricsOverwritesTheOneBefore) {
  serve({.runs_on = true,
         .jobs = {job_at(1, "a", job::Phase::kRunning)},
         .metrics = {{.metric = "cpu_percent", .task = "main", .points = {{.value = 93}}}}});
  cli::TestTerminal narrow({.ws_row = 4, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0});
  // Ends the experiment when the values of the first table are read.
  std::atomic<bool> has_ended = false;
  const auto has_read_values = [&] {
    const auto requests = server_->requests();
    return std::any_of(requests.begin(), requests.end(), [](const std::string& request) {
      return request.starts_with("GET /v1/jobs/ea/metrics");
    });
  };
  std::thread person([&] {
    while (!has_ended && !has_read_values()) std::this_thread::yield();
    auto connection = cli::connect({.serve = {}, .version = "1"});
    ASSERT_TRUE(connection);
    EXPECT_TRUE(connection->client().stop("ea", true));
  });
  const base::UniqueFd before(::dup(STDOUT_FILENO));
  ::dup2(narrow.fd(), STDOUT_FILENO);
  const int code =
      gradient::run({"experiments", "metrics", "stream", "--id", "a", "--metric", "cpuPercentage",
                     "--metric", "memoryUsage", "--metric", "gpuTemp"},
                    {.serve = {}, .version = "1"});
  ::dup2(before.get(), STDOUT_FILENO);
  has_ended = true;
  person.join();

  EXPECT_EQ(code, 0);
  const std::string shown = narrow.output();
  const std::string back = "\x1b[3A\x1b[J";  // three of the four rows are used
  const size_t second = shown.find(back);
  ASSERT_NE(second, std::string::npos) << shown;
  const std::string first = shown.substr(0, second);
  EXPECT_EQ(shown, first + back + first);
  EXPECT_EQ(first.find("\r\n"), 40U) << first;
  EXPECT_EQ(first.size(), 3 * (40 + 2U)) << first;
}

TEST_F(OnTerminal, ACompleteListingAsksNothing) {
  serve({.jobs = {job_at(1, "a", job::Phase::kRunning)}});
  type_on_keyboard("");
  EXPECT_EQ(gradient({"experiments", "list"}).err, "");
}

TEST_F(OnTerminal, AKeyIsReadWithoutEcho) {
  type_on_keyboard("");
  // Input typed before the question is discarded, so the key is typed afterwards.
  int code = -1;
  {
    const cli::PipedStandardError questions;
    std::thread person([&] {
      questions.wait_for("Enter your API Key (not shown): ");
      terminal_.type("mst_typed\n");
    });
    code = gradient::run({"apiKey"}, {.serve = {}, .version = "1"});
    person.join();
  }

  EXPECT_EQ(code, 0);
  EXPECT_EQ(*base::read_file(folder_ / ".paperspace" / "config.json"),
            "{\n  \"apiKey\": \"mst_typed\"\n}\n");
  type("");  // closes the last open end of the terminal
  EXPECT_EQ(shown_by([] {}).find("mst_typed"), std::string::npos);
}

TEST_F(OnTerminal, ALongTableIsShownInThePager) {
  ::setenv("PAGER", ("cat > " + (folder_ / "paged").string()).c_str(), 1);

  EXPECT_EQ(shown_by([] { EXPECT_TRUE(show_table(table_of(5))); }), "");

  EXPECT_EQ(*base::read_file(folder_ / "paged"),
            "+---+\n| 0 |\n+---+\n| 1 |\n| 2 |\n| 3 |\n| 4 |\n+---+\n");
}

TEST_F(OnTerminal, ATableThatFitsIsPrinted) {
  ::setenv("PAGER", "false", 1);
  EXPECT_EQ(shown_by([] { EXPECT_TRUE(show_table(table_of(3))); }),
            "+---+\r\n| 0 |\r\n+---+\r\n| 1 |\r\n| 2 |\r\n+---+\r\n");
}

TEST_F(OnTerminal, WithoutAPagerALongTableIsPrintedToo) {
  ::setenv("PAGER", "/no/such/pager 2> /dev/null", 1);
  EXPECT_TRUE(shown_by([] { EXPECT_TRUE(show_table(table_of(9))); }).starts_with("+---+\r\n"));
}

TEST_F(OnTerminal, QuittingThePagerEarlyIsNotAnError) {
  ::setenv("PAGER", "true", 1);
  EXPECT_EQ(shown_by([] { EXPECT_TRUE(show_table(table_of(20'000))); }), "");
}

}  // namespace

}  // namespace muster::dialects::gradient
