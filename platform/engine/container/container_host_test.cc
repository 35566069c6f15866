#include "engine/container/container_host.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/test_folder.h"
#include "engine/container/scripted_daemon.h"
#include "engine/container/test_sshd.h"
#include "engine/engine.h"

namespace muster::engine {
namespace {

using std::chrono::milliseconds;

constexpr AskingPace kQuick{
    .interval = milliseconds(1), .first_pause = milliseconds(1), .longest_pause = milliseconds(20)};

class ContainerHostTest : public testing::Test {
 protected:
  std::unique_ptr<ContainerHost> host(const std::string& name, const std::string& socket,
                                      const Patience& patience = {}) {
    return host({.name = name, .endpoint = UnixEndpoint{at(socket)}, .address = {}}, patience);
  }
  std::unique_ptr<ContainerHost> host(ContainerHostOptions options, const Patience& patience = {}) {
    return std::make_unique<ContainerHost>(
        loop_, std::move(options), patience, [this] { ++changes_; }, kQuick);
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  base::TestFolder folder_;
  base::EventLoop loop_;
  int changes_ = 0;
};

TEST_F(ContainerHostTest, IsANodeWithTheFactsOfItsEngine) {
  const ScriptedDaemon daemon(loop_, at("a.sock"));
  const auto one = host({.name = "gpu-1",
                         .endpoint = UnixEndpoint{at("a.sock")},
                         .address = "10.0.0.1",
                         .declared_gpus = DeclaredGpus{.count = 4, .model = "A100"},
                         .pool = "big",
                         .topology = {{"rack", "r1"}}});

  ASSERT_TRUE(run_until(loop_, [&] { return one->has_answered(); }));

  const Node node = *one->node();
  EXPECT_EQ(node.name, "gpu-1");
  EXPECT_EQ(node.pool, "big");
  EXPECT_EQ(node.cpu_milli, 8000);
  EXPECT_EQ(node.memory_bytes, int64_t{16} << 30);
  EXPECT_EQ(node.gpus, 4);
  EXPECT_EQ(node.gpu_model, "A100");
  EXPECT_EQ(node.address, "10.0.0.1");
  EXPECT_EQ(node.topology.at("rack"), "r1");
  EXPECT_EQ(node.labels.at("engine"), "podman 4.3.1");
  EXPECT_EQ(node.labels.at("arch"), "amd64");
  EXPECT_FALSE(one->fault());
}

TEST_F(ContainerHostTest, ReportsOnlyChanges) {
  const ScriptedDaemon daemon(loop_, at("a.sock"));
  const auto one = host("gpu-1", "a.sock");

  ASSERT_TRUE(run_until(loop_, [&] { return daemon.count("GET /info") >= 5; }));

  EXPECT_EQ(changes_, 1);
}

TEST_F(ContainerHostTest, ReportsAFaultUntilTheEngineAnswers) {
  const auto one = host("gpu-1", "a.sock");
  ASSERT_TRUE(run_until(loop_, [&] { return one->fault().has_value(); }));
  EXPECT_FALSE(one->has_answered());
  ASSERT_TRUE(one->node());
  EXPECT_TRUE(is_silent(*one->node()));
  EXPECT_EQ(one->node()->cpu_milli, 0);
  EXPECT_NE(one->node()->labels.at(kFault).find(at("a.sock")), std::string::npos);
  const std::string text = one->fault()->to_string();
  EXPECT_NE(text.find("host 'gpu-1' cannot be used"), std::string::npos) << text;
  EXPECT_NE(text.find(at("a.sock")), std::string::npos) << text;
  EXPECT_NE(text.find("systemctl --user start podman.socket"), std::string::npos) << text;

  const ScriptedDaemon daemon(loop_, at("a.sock"));

  ASSERT_TRUE(run_until(loop_, [&] { return one->has_answered(); }));
  EXPECT_FALSE(one->fault());
  EXPECT_FALSE(is_silent(*one->node()));
}

TEST_F(ContainerHostTest, KeepsItsNodeWhileTheEngineIsRestarted) {
  ScriptedDaemon daemon(loop_, at("a.sock"));
  const auto one = host("gpu-1", "a.sock");
  ASSERT_TRUE(run_until(loop_, [&] { return one->has_answered(); }));

  daemon.die();

  ASSERT_TRUE(run_until(loop_, [&] { return one->fault().has_value(); }));
  ASSERT_TRUE(one->node());
  EXPECT_TRUE(is_silent(*one->node()));
  EXPECT_NE(one->node()->labels.at("fault").find(at("a.sock")), std::string::npos);
  daemon.start();
  ASSERT_TRUE(run_until(loop_, [&] { return !one->fault(); }));
  ASSERT_TRUE(one->node());
  EXPECT_FALSE(is_silent(*one->node()));
  EXPECT_FALSE(one->node()->labels.contains("fault"));
}

TEST_F(ContainerHostTest, IsLostAfterALongAbsence) {
  ScriptedDaemon daemon(loop_, at("a.sock"));
  const auto one = host("gpu-1", "a.sock", {.absence = milliseconds(50)});
  ASSERT_TRUE(run_until(loop_, [&] { return one->has_answered(); }));

  daemon.die();

  ASSERT_TRUE(run_until(loop_, [&] { return !one->node(); }));
  EXPECT_TRUE(one->fault());
  daemon.start();
  ASSERT_TRUE(run_until(loop_, [&] { return one->has_answered(); }));
}

TEST_F(ContainerHostTest, ReportsAnEngineThatHangs) {
  ScriptedDaemon daemon(loop_, at("a.sock"));
  daemon.hang();
  const auto one =
      host("gpu-1", "a.sock", {.connect = milliseconds(200), .answer = milliseconds(200)});

  ASSERT_TRUE(run_until(loop_, [&] { return one->fault().has_value(); }));
  EXPECT_EQ(one->fault()->code, base::ErrorCode::kUnavailable) << one->fault()->to_string();

  daemon.hang(false);
  ASSERT_TRUE(run_until(loop_, [&] { return one->has_answered(); }));
}

TEST_F(ContainerHostTest, ReportsSilenceWhileARequestWaitsTooLong) {
  ScriptedDaemon daemon(loop_, at("a.sock"));
  AskingPace pace = kQuick;
  pace.silence = milliseconds(50);
  ContainerHost one(
      loop_, {.name = "gpu-1", .endpoint = UnixEndpoint{at("a.sock")}, .address = {}}, {}, [] {},
      pace);
  ASSERT_TRUE(run_until(loop_, [&] { return one.has_answered(); }));

  daemon.hang();

  ASSERT_TRUE(run_until(loop_, [&] { return one.fault().has_value(); }));
  ASSERT_TRUE(one.node());
  EXPECT_TRUE(is_silent(*one.node()));
  daemon.go_on();
  ASSERT_TRUE(run_until(loop_, [&] { return !one.fault(); }));
}

TEST_F(ContainerHostTest, RejectsAnEngineOfAnotherSystem) {
  ScriptedDaemon daemon(loop_, at("a.sock"));
  daemon.answer("GET /info", R"({"OSType":"windows","Architecture":"amd64"})");
  const auto one = host("gpu-1", "a.sock");

  ASSERT_TRUE(run_until(loop_, [&] { return one->fault().has_value(); }));

  EXPECT_NE(one->fault()->what.find("tasks need Linux"), std::string::npos);
}

TEST_F(ContainerHostTest, ReconnectsWhenTheSshConnectionBreaks) {
  const TestSshd sshd;
  const ScriptedDaemon daemon(loop_, at("far.sock"));
  const auto one =
      host({.name = "gpu-1",
            .endpoint = SshEndpoint{.user = {}, .host = "gpu-1", .socket = at("far.sock")},
            .address = {}});
  ASSERT_TRUE(run_until(loop_, [&] { return one->has_answered() || one->fault(); }));
  ASSERT_FALSE(one->fault()) << one->fault()->to_string();
  EXPECT_EQ(one->node()->address, "gpu-1");
  EXPECT_EQ(one->node()->labels.at("endpoint"), "ssh://gpu-1" + at("far.sock"));

  sshd.cut();

  ASSERT_TRUE(run_until(loop_, [&] { return one->fault().has_value(); }));
  ASSERT_TRUE(run_until(loop_, [&] { return !one->fault(); }));
}

TEST_F(ContainerHostTest, ReportsTheMessageOfSsh) {
  const TestSshd sshd;
  sshd.lock();
  const auto one =
      host({.name = "gpu-1",
            .endpoint = SshEndpoint{.user = {}, .host = "gpu-1", .socket = at("far.sock")},
            .address = {}});

  ASSERT_TRUE(run_until(loop_, [&] { return one->fault().has_value(); }));

  const std::string text = one->fault()->to_string();
  EXPECT_NE(text.find("Permission denied"), std::string::npos) << text;
  EXPECT_NE(text.find("try it by hand"), std::string::npos) << text;
}

std::set<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::set<std::filesystem::path> entries;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    entries.insert(entry.path());
  return entries;
}

/// Sets XDG_RUNTIME_DIR for a test.
class RuntimeFolder {
 public:
  explicit RuntimeFolder(const std::filesystem::path& folder) {
    if (const char* const old = std::getenv(kName)) old_ = old;
    std::filesystem::create_directory(folder);
    ::setenv(kName, folder.c_str(), 1);
  }
  RuntimeFolder(const RuntimeFolder&) = delete;
  RuntimeFolder& operator=(const RuntimeFolder&) = delete;
  ~RuntimeFolder() { old_ ? ::setenv(kName, old_->c_str(), 1) : ::unsetenv(kName); }

 private:
  static constexpr const char* kName = "XDG_RUNTIME_DIR";
  std::optional<std::string> old_;
};

TEST_F(ContainerHostTest, TakesOverTheFolderOfAKilledServer) {
  const TestSshd sshd;
  const ScriptedDaemon daemon(loop_, at("far.sock"));
  const std::filesystem::path folder = folder_ / "run";
  const RuntimeFolder runtime(folder);
  const auto connect = [&] {
    return std::make_unique<ContainerHost>(
        loop_,
        ContainerHostOptions{
            .name = "gpu-1",
            .endpoint = SshEndpoint{.user = {}, .host = "gpu-1", .socket = at("far.sock")},
            .address = {}},
        Patience{}, [] {}, kQuick, "owner");
  };
  auto one = connect();
  ASSERT_TRUE(run_until(loop_, [&] { return one->has_answered(); }));
  const auto made = entries_of(folder);
  ASSERT_EQ(made.size(), 1U);
  one.reset();
  ASSERT_TRUE(entries_of(folder).empty());

  // As a SIGKILL leaves it.
  ASSERT_EQ(::mkdir(made.begin()->c_str(), 0700), 0);
  ASSERT_TRUE(base::write_file(*made.begin() / "engine.sock", ""));
  one = connect();
  ASSERT_TRUE(run_until(loop_, [&] { return one->has_answered(); }));
  EXPECT_EQ(entries_of(folder), made);
  one.reset();

  // Another thing of that name is not used.
  std::filesystem::create_directory(folder_ / "elsewhere");
  std::filesystem::create_directory_symlink(folder_ / "elsewhere", *made.begin());
  one = connect();
  ASSERT_TRUE(run_until(loop_, [&] { return one->has_answered(); }));
  EXPECT_EQ(entries_of(folder).size(), 2U);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "elsewhere"));
}

TEST_F(ContainerHostTest, MeetingSucceedsIfOneHostAnswers) {
  const ScriptedDaemon daemon(loop_, at("b.sock"));
  std::vector<std::unique_ptr<ContainerHost>> hosts;
  hosts.push_back(host("a", "a.sock"));
  hosts.push_back(host("b", "b.sock"));

  ASSERT_TRUE(meet(loop_, hosts));

  EXPECT_TRUE(hosts[0]->fault());
  EXPECT_TRUE(hosts[1]->has_answered());
}

TEST_F(ContainerHostTest, MeetingNamesTheFaultOfEachHost) {
  std::vector<std::unique_ptr<ContainerHost>> hosts;
  hosts.push_back(host("a", "a.sock"));
  hosts.push_back(host("b", "b.sock"));

  const auto met = meet(loop_, hosts);

  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().code, base::ErrorCode::kUnavailable);
  const std::string text = met.error().to_string();
  EXPECT_NE(text.find(at("a.sock")), std::string::npos) << text;
  EXPECT_NE(text.find(at("b.sock")), std::string::npos) << text;
}

TEST_F(ContainerHostTest, MeetingReportsThatWaitingDoesNotHelp) {
  ScriptedDaemon daemon(loop_, at("a.sock"));
  daemon.answer("GET /info", R"({"OSType":"windows","Architecture":"amd64"})");
  std::vector<std::unique_ptr<ContainerHost>> hosts;
  EXPECT_EQ(meet(loop_, hosts).error().code, base::ErrorCode::kInvalid);

  hosts.push_back(host("a", "a.sock"));
  EXPECT_EQ(meet(loop_, hosts).error().code, base::ErrorCode::kInvalid);

  hosts.push_back(host("b", "b.sock"));
  EXPECT_EQ(meet(loop_, hosts).error().code, base::ErrorCode::kUnavailable);
}

TEST_F(ContainerHostTest, MeetingIsBoundedAndLeavesTheLoopUsable) {
  ScriptedDaemon silent(loop_, at("a.sock"));
  silent.hang();
  std::vector<std::unique_ptr<ContainerHost>> hosts;
  hosts.push_back(host("a", "a.sock"));

  const auto met = meet(loop_, hosts, milliseconds(50));

  ASSERT_FALSE(met);
  EXPECT_NE(met.error().to_string().find("did not answer in time"), std::string::npos);
  silent.hang(false);
  silent.die();  // the host then counts as failed, and the server connects again
  ASSERT_TRUE(run_until(loop_, [&] { return hosts[0]->fault().has_value(); }));
  bool ran = false;
  const auto timer = loop_.after(milliseconds(20), [&] {
    ran = true;
    loop_.stop();
  });
  loop_.run();
  EXPECT_TRUE(ran);  // no stop of the loop is pending from the earlier connection
}

}  // namespace
}  // namespace muster::engine
