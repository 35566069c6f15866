// The client with fake programs. slurm_client_contract_test.cc tests it on a real cluster.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "base/test_folder.h"
#include "base/test_loop.h"
#include "base/unique_fd.h"
#include "engine/slurm/open_client.h"

namespace muster::engine::slurm {
namespace {

using namespace std::chrono_literals;
using base::ErrorCode;
using base::Result;

class CommandClientTest : public testing::Test {
 protected:
  CommandClientTest() {
    for (const char* name : {"sbatch", "squeue", "scancel", "sinfo", "scontrol", "sacct"}) {
      pretend(name, "exit 99");
    }
  }

  /// Installs a shell script with these lines in place of a program.
  void pretend(const std::string& name, const std::string& lines) {
    const auto path = folder_ / name;
    std::filesystem::remove(path);
    ASSERT_TRUE(base::write_file(
        path, "#!/bin/sh\nhere='" + folder_.path().string() + "'\n" + lines + "\n", 0700));
  }

  std::string written(const std::string& name) {
    const auto text = base::read_file(folder_ / name);
    return text ? *text : "(no " + name + ")";
  }

  CommandClient& client(std::chrono::milliseconds patience = 60s, size_t at_once = 8) {
    auto opened = CommandClient::open(
        loop_.loop(),
        {.folder = folder_.path().string(), .patience = patience, .submits_at_once = at_once});
    EXPECT_TRUE(opened);
    client_ = *std::move(opened);
    return *client_;
  }

  static Submission a_job() {
    Submission submission;
    submission.name = "digits";
    submission.script = "#!/bin/sh\n# the key\n";
    submission.components = {{.tasks = 1, .gpu_type = {}}};
    submission.partition = "nonesuch";
    submission.environment = {{"PATH", "/usr/bin:/bin"}};
    return submission;
  }

  Result<uint64_t> submitted(CommandClient& to) {
    return loop_.answer<uint64_t>([&](auto then) { to.submit(a_job(), std::move(then)); });
  }

  base::TestFolder folder_;
  base::TestLoop loop_;
  std::unique_ptr<CommandClient> client_;
};

TEST_F(CommandClientTest, TheScriptIsOnlyInStandardInput) {
  pretend("sbatch",
          "cat >\"$here/script\"; echo \"$@\" >\"$here/arguments\"; env >\"$here/env\"\n"
          "echo '17;cluster'");
  const auto id = submitted(client());
  ASSERT_TRUE(id) << id.error().to_string();
  EXPECT_EQ(*id, 17u);
  EXPECT_EQ(written("arguments"), "--parsable\n");
  EXPECT_NE(written("script").find("# the key\n"), std::string::npos);
  EXPECT_EQ(written("env").find("HOME="), std::string::npos) << written("env");
}

TEST_F(CommandClientTest, IgnoresOtherOutputBesideTheId) {
  pretend("sbatch", "echo 'Welcome to the cluster'; echo 41");
  const auto id = submitted(client());
  ASSERT_TRUE(id);
  EXPECT_EQ(*id, 41u);
}

TEST_F(CommandClientTest, ARefusalNamesTheValue) {
  pretend("sbatch",
          "echo 'sbatch: error: Batch job submission failed: Invalid partition name "
          "specified' >&2; exit 1");
  const auto id = submitted(client());
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::kRefused);
  EXPECT_NE(id.error().what.find("'nonesuch'"), std::string::npos);
}

TEST_F(CommandClientTest, ALostAnswerIsATimeout) {
  for (const char* lines :
       {"kill -9 $$", "exit 1", "echo nonsense", "exec sleep 1000",
        "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv "
        "operation' >&2; exit 1"}) {
    pretend("sbatch", lines);
    const bool is_slow = std::string_view(lines).starts_with("exec sleep");
    const auto id = submitted(client(is_slow ? 50ms : 60s));
    ASSERT_FALSE(id) << lines;
    EXPECT_EQ(id.error().code, ErrorCode::kTimeout) << lines << ": " << id.error().to_string();
  }
}

TEST_F(CommandClientTest, AnUnreachableControllerHasAcceptedNothing) {
  pretend("sbatch",
          "echo 'sbatch: error: Batch job submission failed: Unable to contact slurm "
          "controller (connect failure)' >&2; exit 1");
  const auto id = submitted(client());
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::kUnavailable);
}

TEST_F(CommandClientTest, AnInvalidSubmissionIsNotSent) {
  pretend("sbatch", "touch \"$here/asked\"; echo 1");
  Submission submission = a_job();
  submission.name = "a\nb";
  CommandClient& to = client();
  const auto id =
      loop_.answer<uint64_t>([&](auto then) { to.submit(std::move(submission), std::move(then)); });
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "asked"));
}

TEST_F(CommandClientTest, AFewSubmitsRunAtOnceAndEachIsAnswered) {
  // Each program holds a lock while it runs: at most two locks are held.
  pretend("sbatch",
          "exec 8>\"$here/a\" 9>\"$here/b\"\n"
          "flock -n 8 || flock -n 9 || { echo 'too many' >&2; exit 1; }\n"
          "echo $$");
  CommandClient& to = client(60s, 2);
  constexpr size_t kMany = 24;
  std::vector<Result<uint64_t>> answers;
  for (size_t i = 0; i < kMany; ++i) {
    to.submit(a_job(), [&](Result<uint64_t> answer) {
      answers.push_back(std::move(answer));
      loop_.look();
    });
  }
  EXPECT_TRUE(answers.empty());
  ASSERT_TRUE(loop_.run_until([&] { return answers.size() == kMany; }));
  for (const auto& answer : answers) EXPECT_TRUE(answer) << answer.error().to_string();
}

TEST_F(CommandClientTest, TheQueueIsReadInOneCallOfThisUsersJobs) {
  pretend(
      "squeue",
      "printf '%s\\n' \"$@\" >\"$here/arguments\"; echo \"$TZ\" >\"$here/zone\"\n"
      "printf '2\\0370\\037N/A\\037RUNNING\\037None\\037N/A\\037n1\\0370\\0370\\037main\\037(null)"
      "\\037(null)\\037c\\037\\n'");
  CommandClient& from = client();
  const auto jobs =
      loop_.answer<std::vector<ListedJob>>([&](auto then) { from.jobs(std::move(then)); });
  ASSERT_TRUE(jobs) << jobs.error().to_string();
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ(jobs->front().id, 2u);
  EXPECT_EQ(jobs->front().comment, "c");
  EXPECT_NE(written("arguments").find("--states=all\n--user=" + std::to_string(geteuid()) + "\n"),
            std::string::npos);
  EXPECT_EQ(written("zone"), "UTC0\n");
}

TEST_F(CommandClientTest, AnUnreadableQueueIsNeverAnEmptyQueue) {
  for (const char* lines : {"kill -9 $$", "exit 1", "exec sleep 1000",
                            "echo 'slurm_load_jobs error: Unable to contact slurm controller "
                            "(connect failure)' >&2; exit 1",
                            "echo 'slurm_load_jobs error: Socket timed out' >&2; exit 1"}) {
    pretend("squeue", lines);
    const bool is_slow = std::string_view(lines).starts_with("exec sleep");
    CommandClient& from = client(is_slow ? 50ms : 60s);
    const auto jobs =
        loop_.answer<std::vector<ListedJob>>([&](auto then) { from.jobs(std::move(then)); });
    ASSERT_FALSE(jobs) << lines;
    EXPECT_EQ(jobs.error().code, ErrorCode::kUnavailable) << lines;
  }
}

TEST_F(CommandClientTest, AQueueWithoutARequestedFieldIsAnError) {
  pretend("squeue",
          "echo 'squeue: error: Invalid job format specification: HetJobID' >&2\n"
          "printf '2\\037N/A\\037RUNNING\\037None\\037N/A\\037n1\\0370\\0370\\037main\\037a\\037b"
          "\\037c\\037\\n'");
  CommandClient& from = client();
  const auto jobs =
      loop_.answer<std::vector<ListedJob>>([&](auto then) { from.jobs(std::move(then)); });
  ASSERT_FALSE(jobs);
  EXPECT_EQ(jobs.error().code, ErrorCode::kInternal);
}

TEST_F(CommandClientTest, WithoutADatabaseThereAreNoPastJobs) {
  pretend("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1");
  CommandClient& from = client();
  const auto ask = [&] {
    return loop_.answer<std::vector<ListedJob>>(
        [&](auto then) { from.past_jobs({1, 2}, std::move(then)); });
  };
  const auto disabled = ask();
  ASSERT_TRUE(disabled) << disabled.error().to_string();
  EXPECT_TRUE(disabled->empty());

  pretend("sacct", "echo 'sacct: error: slurmdbd: connection refused' >&2; exit 1");
  const auto silent = ask();
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().code, ErrorCode::kUnavailable);

  std::filesystem::remove(folder_ / "sacct");
  const auto missing = ask();
  ASSERT_TRUE(missing);
  EXPECT_TRUE(missing->empty());
}

TEST_F(CommandClientTest, CancelsAllInOneCallAndIgnoresEndedJobs) {
  pretend("scancel",
          "echo \"$@\" >>\"$here/calls\"\n"
          "echo 'scancel: error: Kill job error on job id 8: Invalid job id specified' "
          ">&2\nexit 1");
  CommandClient& by = client();
  const auto cancel = [&] {
    return loop_.answer<void>([&](auto then) { by.cancel({7, 8}, std::move(then)); });
  };
  EXPECT_TRUE(cancel());
  EXPECT_EQ(written("calls"), "7 8\n");

  pretend("scancel",
          "echo 'scancel: error: Kill job error on job id 8: Invalid job id specified' "
          ">&2\necho 'scancel: error: Kill job error on job id 7: Socket timed out' >&2"
          "\nexit 1");
  const auto lost = cancel();
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::kUnavailable);
}

TEST_F(CommandClientTest, ReadsTheFactsOfTheController) {
  pretend("scontrol",
          "echo 'SLURM_CONF              = /etc/slurm.conf'\n"
          "echo 'SLURM_VERSION           = 22.05.8'");
  CommandClient& of = client();
  const auto facts = loop_.answer<ClientFacts>([&](auto then) { of.facts(std::move(then)); });
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->version, "22.05.8");
}

TEST_F(CommandClientTest, ADestroyedClientKillsItsProgramsAndAnswersNothing) {
  const std::string path = (folder_ / "life").string();
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const base::UniqueFd life(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(life);
  pretend("sbatch", "exec 9>\"$here/life\"; echo >&9; exec sleep 1000");
  CommandClient& to = client(60s, 1);
  for (int i = 0; i < 2; ++i) {
    to.submit(a_job(), [](Result<uint64_t>) { ADD_FAILURE() << "it has answered"; });
  }
  bool runs = false;
  const auto started = loop_.loop().when_readable(life.get(), [&] {
    runs = true;
    loop_.look();
  });
  ASSERT_TRUE(loop_.run_until([&] { return runs; }));

  client_.reset();

  char byte = 0;
  EXPECT_EQ(::read(life.get(), &byte, 1), 1);
  EXPECT_EQ(::read(life.get(), &byte, 1), 0) << "a process still has the pipe";
  bool is_past = false;
  loop_.loop().post([&] {
    is_past = true;
    loop_.look();
  });
  EXPECT_TRUE(loop_.run_until([&] { return is_past; }));
}

TEST_F(CommandClientTest, AMissingProgramIsNamed) {
  std::filesystem::remove(folder_ / "sinfo");
  const auto opened = CommandClient::open(loop_.loop(), {.folder = folder_.path().string()});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kNotFound);
  EXPECT_NE(opened.error().what.find("sinfo"), std::string::npos) << opened.error().what;
}

}  // namespace
}  // namespace muster::engine::slurm
