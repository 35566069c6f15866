// A server that several users share, for tests of access rights. Everything is real except for the
// engine, which is a fake, and the store, which is in memory. The server has one node with 4 GPUs.
//
// Tests create two projects that compete for it, velvet and green. Everything that belongs to velvet
// has a name that occurs nowhere else, so a test can search an answer for those names.
//
// Thread-safety: none; the thread of the test runs the server's event loop.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "access/secret_box.h"
#include "base/fake_random.h"
#include "base/test_folder.h"
#include "control/accounts.h"
#include "control/controller.h"
#include "engine/fake_engine.h"
#include "notify/notifications.h"
#include "server/app.h"
#include "store/memory_store.h"
#include "workspace/tree_store.h"

namespace muster::server {

/// The names and values of velvet and of umbrella, the parent project of both. A user without a role
/// in velvet must not see any of them.
inline const std::vector<std::string> kVelvetWords{
    "velvet",   "umbrella",   "quicksilver", "obsidian", "garnet",   "hyacinth",    "jasper",
    "beryl",    "amber",      "MOONSTONE",   "opal",     "sardonyx", "chrysoprase", "azurite",
    "porphyry", "tourmaline", "malachite",   "peridot",  "amethyst", "chalcedony"};

/// The loopback port of the web page, without a listening socket.
class FakeDoor : public LoopbackDoor {
 public:
  base::Result<LoopbackAddress> open() override { return *(address_ = kAddress); }
  void close() override { address_.reset(); }
  std::optional<LoopbackAddress> address() const override { return address_; }

  inline static const LoopbackAddress kAddress{.name = "ui-k3x9a2.localhost", .port = 41873};

 private:
  std::optional<LoopbackAddress> address_;
};

class TeamServer {
 public:
  struct Ask {
    std::string method = "GET";
    std::string path;
    std::map<std::string, std::string> query;
    std::string body;
    std::string token;  ///< empty: none
    std::map<std::string, std::string> headers;
    bool over_unix_socket = false;
    std::string from = "10.0.0.7";
  };

  /// `idle_exit`: the server leaves after this time without requests. Absent: never.
  explicit TeamServer(std::optional<std::chrono::milliseconds> idle_exit = std::nullopt) {
    engine_.offered = {engine::fake_node("gpu-1", 4)};
    engine_.logs["launcher"] = "tourmaline\n";
    engine_.logs["main"] = "green line\n";
    controller_ = std::make_unique<control::Controller>(
        control::ControllerDependencies{.loop = loop_,
                                        .store = store_,
                                        .engine = engine_,
                                        .clock = clock_,
                                        .random = random_,
                                        .accounts = &accounts_},
        control::SiteFacts{.user = "ada"});
    EXPECT_TRUE(controller_->recover());
    app_ = std::make_unique<App>(App::Dependencies{.loop = loop_,
                                                   .controller = *controller_,
                                                   .accounts = accounts_,
                                                   .clock = clock_,
                                                   .random = random_,
                                                   .owner = "ada",
                                                   .trees = trees_,
                                                   .notifications = notifications_,
                                                   .all_delivered =
                                                       [this] {
                                                         ++idle_looks;
                                                         return may_leave;
                                                       },
                                                   .door = &door_},
                                 AppOptions{.version = "1.2.3",
                                            .state_folder = "/porphyry/state",
                                            .address = "muster.example.org:7443",
                                            .idle_exit = idle_exit},
                                 [this] { left = true; });
    handler_ = app_->handler();
  }

  /// Runs the event loop until no work is left. Workers answer on their port in the meantime.
  void settle() {
    constexpr int kRounds = 30;
    for (int round = 0; round < kRounds; ++round) {
      loop_.post([this] { loop_.stop(); });
      loop_.run();
      const auto running = engine_.running;
      for (const auto& [gang, task] : running) {
        if (task.starts_with("worker")) engine_.answer(gang, task);
      }
    }
  }

  /// Sends a request and returns the answer after settle(). If the answer is a stream, its body is
  /// what the stream delivers without a further event.
  http::Response ask(const Ask& ask) {
    http::Response answer{.status = 0};
    http::Request request{.method = ask.method,
                          .path = ask.path,
                          .query = ask.query,
                          .headers = {{"x-request-id", "r1"}},
                          .body = ask.body,
                          .peer = {.address = ask.from}};
    for (const auto& [name, value] : ask.headers) request.headers[name] = value;
    if (ask.over_unix_socket) request.peer = {.user = 0, .address = "local"};
    if (!ask.token.empty()) request.headers["authorization"] = "Bearer " + ask.token;
    handler_(std::move(request), [&](http::Response response) { answer = std::move(response); });
    settle();
    // Blocking work is done on another thread, and the answer follows its end.
    while (answer.status == 0) settle();
    if (answer.stream) answer.body += read(answer.stream);
    return answer;
  }

  /// Reads what the stream can deliver now. At the end of the stream, the result ends with "(end)".
  std::string read(const std::shared_ptr<http::BodyStream>& stream) {
    std::string text;
    constexpr int kMostPieces = 20;
    for (int piece = 0; piece < kMostPieces; ++piece) {
      // A pull that is not answered stays open, and the next call of read() continues it.
      auto& open = pulls_[stream];
      if (open == nullptr) {
        open = std::make_shared<std::optional<http::BodyPiece>>();
        stream->pull([pull = open](http::BodyPiece bytes) { *pull = std::move(bytes); });
      }
      settle();
      if (!*open) return text;
      const std::optional<http::BodyPiece> delivered = *std::exchange(open, nullptr);
      if (delivered->is_end()) return text + "(end)";
      text += delivered->bytes();
    }
    return text;
  }

  void add_project(const std::string& name, const std::string& parent, int64_t gpus,
                   std::optional<int64_t> limit = std::nullopt) {
    job::Project project{.name = name, .parent = parent};
    project.quota.deserved.gpu_milli = gpus * 1000;
    if (limit) project.quota.limit.gpu_milli = *limit * 1000;
    const auto added = controller_->projects().create(project);
    ASSERT_TRUE(added) << added.error().to_string();
  }

  void add_user(const std::string& name, const std::map<std::string, access::Role>& projects,
                access::Role server_role = access::Role::kNone) {
    const auto added = accounts_.create_user(
        {.name = name, .server_role = server_role, .projects = projects}, kNobody);
    ASSERT_TRUE(added) << added.error().to_string();
  }

  /// The text of a new token.
  std::string token(const control::TokenRequest& request) {
    auto issued = accounts_.issue(request, kNobody);
    EXPECT_TRUE(issued);
    return issued ? issued->text : "";
  }

  const job::Job& submit(const job::JobSpec& spec, const std::string& user) {
    const auto job = controller_->submit(spec, "", {.user = user, .address = "10.0.0.9"});
    EXPECT_TRUE(job) << job.error().to_string();
    settle();
    return **controller_->jobs().find(job->id);
  }

  void end(const std::string& name) {
    const job::Job& job = **controller_->jobs().find(name);
    engine_.end({job.id, job.attempt}, job.tasks.front().name, {});
    settle();
  }

  control::Controller& controller() { return *controller_; }
  control::Accounts& accounts() { return accounts_; }
  engine::FakeEngine& engine() { return engine_; }
  workspace::TreeStore& trees() { return trees_; }
  notify::Notifications& notifications() { return notifications_; }
  const notify::Notifications& notifications() const { return notifications_; }
  base::FakeClock& clock() { return clock_; }
  FakeDoor& door() { return door_; }
  const App& app() const { return *app_; }

  /// Disconnects the clients of all streams.
  void drop_streams() { pulls_.clear(); }

  bool left = false;
  bool may_leave = true;  ///< when it is idle
  int idle_looks = 0;     ///< how often it was found idle, apart from may_leave and open answers

 private:
  inline static const access::Actor kNobody{.user = "ada", .address = "local"};

  base::EventLoop loop_;
  store::MemoryStore store_;
  engine::FakeEngine engine_{loop_};
  base::TestFolder folder_;
  workspace::TreeStore trees_{folder_.path() / "trees"};
  base::FakeClock clock_;
  base::FakeRandom random_;
  FakeDoor door_;
  access::SecretBox box_{access::SecretBox::Key{}};
  control::Accounts accounts_{
      {.loop = loop_, .store = store_, .clock = clock_, .random = random_, .box = box_}};
  /// Every receiver of notifications is allowed, and answers 204.
  notify::Notifications notifications_{
      {.loop = loop_,
       .clock = clock_,
       .random = random_,
       .box = box_,
       .send = [](const notify::OutgoingNotification&, auto done) { done({.status = 204}); },
       .check = [](const notify::Receiver&, auto done) { done({}); },
       .keep = [](const notify::NotificationChanges&) { return base::Result<void>(); },
       .has_project = [](const std::string&) { return true; }}};
  std::unique_ptr<control::Controller> controller_;
  std::unique_ptr<App> app_;
  http::Handler handler_;
  std::map<std::shared_ptr<http::BodyStream>, std::shared_ptr<std::optional<http::BodyPiece>>>
      pulls_;
};

inline job::JobSpec single_job(const std::string& name, const std::string& project, int gpus) {
  return {.name = name,
          .project = project,
          .command = {"train"},
          .resources = {.gpus = gpus},
          .folder = "/"};
}

}  // namespace muster::server
