// For tests: a server whose muster-nodes are real processes with the variables of a step of Slurm.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/test_folder.h"
#include "base/test_loop.h"
#include "base/test_port.h"
#include "engine/folder/mirror.h"
#include "engine/folder/run_conversation.h"
#include "engine/folder/task_folder.h"
#include "engine/log_frame.h"
#include "engine/node/brief.h"
#include "engine/node/connection.h"

namespace muster::engine::node {

/// A muster-node. It is killed when the object is destroyed.
class TestNode {
 public:
  TestNode(const NodeBrief& brief, const std::map<std::string, std::string>& variables,
           const std::filesystem::path& complaints)
      : complaints_(complaints) {
    std::map<std::string, std::string> environment{{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                                                   {"SLURM_PROCID", "0"},
                                                   {"SLURM_JOB_ID", "17"},
                                                   {"SLURMD_NODENAME", "n1"}};
    for (const auto& [name, value] : variables) environment[name] = value;
    std::vector<std::string> lines;
    for (const auto& [name, value] : environment) lines.push_back(name + "=" + value);
    std::array<int, 2> input{-1, -1};
    EXPECT_EQ(::pipe2(input.data(), O_CLOEXEC), 0);
    const base::UniqueFd reader(input[0]);
    base::UniqueFd writer(input[1]);
    const base::UniqueFd errors(
        ::open(complaints_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    auto child =
        base::spawn({.argv = {MUSTER_NODE, "--component", "0"},
                     .environment = lines,
                     .descriptors = {{reader.get(), 0}, {errors.get(), 1}, {errors.get(), 2}},
                     .new_session = true});
    EXPECT_TRUE(child) << child.error().what;
    if (!child) return;
    process_ = *std::move(child);
    // Standard input stays open, as under srun.
    input_ = std::move(writer);
    EXPECT_TRUE(base::write_all(input_.get(), encode(brief)));
  }
  ~TestNode() {
    if (process_.pid <= 0 || code_) return;
    signal(SIGKILL);
    [[maybe_unused]] const auto status = base::wait_for(process_);
  }

  void signal(int number) {
    [[maybe_unused]] const auto sent = base::send_signal(process_.pidfd, number);
  }
  pid_t pid() const { return process_.pid; }
  int pidfd() const { return process_.pidfd.get(); }

  /// The exit code, or 128 + the signal.
  int code() {
    if (code_) return *code_;
    const auto status = base::wait_for(process_);
    code_ = !status ? -1 : WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
    return *code_;
  }

  std::string complaints() const {
    auto text = base::read_file(complaints_);
    return text ? *std::move(text) : "";
  }

 private:
  std::filesystem::path complaints_;
  base::Child process_;
  base::UniqueFd input_;
  std::optional<int> code_;
};

/// The news that one muster-node has sent to the server, and the copy of its task's folder.
class TestServer : public ::testing::Test {
 protected:
  TestServer() {
    ::signal(SIGPIPE, SIG_IGN);
    key_.fill(7);
  }

  // --- the server

  /// Without a port: on a new one, which stays free for the test after close().
  void open() { open(ports_.emplace_back().number()); }
  void open(uint16_t port) {
    auto hub = NodeHub::open(
        loop_.loop(),
        {.bind = "127.0.0.1",
         .port = port,
         .key_of = [this](const GangId& gang) -> std::optional<rsh::Key> {
           if (gang != gang_) return std::nullopt;
           return key_;
         },
         .on_connection = [this](std::shared_ptr<NodeConnection> line) { take(std::move(line)); }});
    ASSERT_TRUE(hub) << hub.error().to_string();
    hub_ = *std::move(hub);
    port_ = hub_->port();
  }

  void close() {
    line_.reset();
    streams_.clear();
    hub_.reset();
  }

  NodeBrief brief() const {
    return {.caller = {gang_},
            .key = key_,
            .hosts = {"127.0.0.1"},
            .port = port_,
            .sharing = Sharing::kNo,
            .folder = (folder_ / "jobs").string(),
            .mark = ".shared-0123456789abcdef",
            .nonce = "5eed",
            .linger = std::chrono::minutes(10)};
  }

  void run_node(const std::map<std::string, std::string>& variables = {}) {
    run_node(brief(), variables);
  }
  void run_node(const NodeBrief& brief, const std::map<std::string, std::string>& variables = {}) {
    node_.emplace(brief, variables, folder_ / "complaints");
  }

  void wait_until(const std::function<bool()>& is_done) {
    ASSERT_TRUE(loop_.run_until(is_done)) << "the node's complaints: " << node_->complaints();
  }
  void wait_for_line() {
    wait_until([this] { return line_ != nullptr; });
  }
  /// Waits for the end of muster-node.
  void wait_for_exit() {
    bool over = false;
    const auto end = loop_.loop().when_readable(node_->pidfd(), [&] {
      over = true;
      loop_.look();
    });
    wait_until([&] { return over; });
  }

  template <class News>
  const News* find() const {
    for (const NodeNews& each : news_) {
      if (const auto* found = std::get_if<News>(&each)) return found;
    }
    return nullptr;
  }
  template <class News>
  const News& wait_for() {
    wait_until([this] { return find<News>() != nullptr; });
    static const News kNone{};
    return find<News>() != nullptr ? *find<News>() : kNone;
  }

  // --- a task

  StartOrder order(const std::string& script) const {
    StartOrder order;
    order.attempt = gang_.attempt;
    order.plan.task = "main";
    order.plan.node = "n1";
    order.plan.hostname = "job-main";
    order.plan.address = "127.0.0.1";
    order.plan.argv = {"/bin/sh", "-c", script};
    order.plan.environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}};
    order.plan.folder = "/";
    order.plan.grace = std::chrono::seconds(30);
    order.programs = std::filesystem::path(MUSTER_SHIM).parent_path().string();
    order.folder = node_folder().string();
    return order;
  }

  std::filesystem::path node_folder() const { return folder_ / "node"; }
  TaskFolder task_on_node() const { return {node_folder() / "job-1" / "2" / "main"}; }

  void start(const StartOrder& order) {
    wait_for_line();
    if (!order.is_shared) {
      auto mirror = Mirror::open({folder_ / "jobs" / "job-1" / "2" / "main"}, order.log_quota);
      ASSERT_TRUE(mirror);
      mirror_.emplace(*std::move(mirror));
    }
    line_->send(order);
    wait_for<StartAnswer>();
  }

  /// Starts the task, and waits until it runs.
  void start_well(const StartOrder& order) {
    start(order);
    const auto& answer = wait_for<StartAnswer>();
    ASSERT_FALSE(answer.error) << answer.error->to_string();
  }

  /// The task's output so far in the server's copy.
  std::string log() const {
    auto cursor = open_log_in({folder_ / "jobs" / "job-1" / "2" / "main"}, "main");
    if (!cursor) return "";
    std::string text;
    LogFrame frame;
    for (auto more = (*cursor)->next(frame); more && *more; more = (*cursor)->next(frame)) {
      text += frame.bytes;
    }
    return text;
  }
  void wait_for_log(const std::string& text) {
    wait_until([&] { return log().find(text) != std::string::npos; });
  }

  void send_farewell(int code = 0) {
    line_->send(Farewell{code});
    wait_for_exit();
    EXPECT_EQ(node_->code(), code) << node_->complaints();
  }

  void take(std::shared_ptr<NodeConnection> line) {
    if (line->hello().stream != 0) {
      streams_[line->hello().stream] = std::move(line);
      return loop_.look();
    }
    line_ = std::move(line);
    ++calls_;
    line_->listen({.on_message =
                       [this](const NodeMessage& message) {
                         take_news(std::get<NodeNews>(message));
                         loop_.look();
                       },
                   .on_end =
                       [this](const std::string&) {
                         loop_.loop().post([gone = std::exchange(line_, nullptr)] {});
                         loop_.look();
                       }});
    line_->send(mirror_ ? Welcome{.log_offset = mirror_->log_offset(),
                                  .metrics_offset = mirror_->metrics_offset(),
                                  .start = start_number_}
                        : Welcome{.start = start_number_});
    loop_.look();
  }

  void take_news(const NodeNews& news) {
    if (const auto* record = std::get_if<RecordNews>(&news)) {
      EXPECT_EQ(find<EndedNews>(), nullptr) << "a record behind the end";
      const auto taken = mirror_->take(record->record);
      EXPECT_TRUE(taken) << taken.error().what;
    }
    news_.push_back(news);
  }

  base::TestFolder folder_;
  base::TestLoop loop_;
  const GangId gang_{.job_id = "job-1", .attempt = 2};
  rsh::Key key_{};
  std::unique_ptr<NodeHub> hub_;
  std::vector<base::HeldPort> ports_;
  uint16_t port_ = 0;
  std::shared_ptr<NodeConnection> line_;
  int calls_ = 0;
  std::map<uint64_t, std::shared_ptr<NodeConnection>> streams_;
  std::vector<NodeNews> news_;
  std::optional<Mirror> mirror_;
  uint64_t start_number_ = 0;  ///< of the task that the server expects; 0: of any
  std::optional<TestNode> node_;
};

}  // namespace muster::engine::node
