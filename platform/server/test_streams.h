// For tests: a server with a controller whose jobs behave as a test requires, on its own thread,
// and clients on its socket.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/client.h"
#include "base/fake_random.h"
#include "control/test_logs.h"
#include "http/test_server.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/status_routes.h"

namespace muster::server {

class Streams : public testing::Test {
 protected:
  Streams() {
    server_.on_loop([this] {
      engine_ = std::make_unique<control::GrowingLogs>(server_.loop());
      engine_->offered = {{.name = "n1", .task_slots = 1000, .gpus = 8, .gpu_model = "V100"}};
      controller_ = std::make_unique<control::Controller>(
          control::ControllerDependencies{.loop = server_.loop(),
                                          .store = store_,
                                          .engine = *engine_,
                                          .clock = clock_,
                                          .random = random_},
          control::SiteFacts{.user = "ada"});
      add_job_routes(router_, *controller_);
      add_log_routes(router_, server_.loop(), *controller_);
      add_watch_routes(router_, server_.loop(), *controller_);
      add_job_list_route(router_, *controller_);
      add_status_routes(router_, *controller_, requests_, "1.2");
    });
  }
  ~Streams() override {
    server_.on_loop([this] {
      server_.server().close();
      router_ = {};
      controller_.reset();
    });
    settle();  // the engine's reports that are under way
    server_.on_loop([this] { engine_.reset(); });
  }

  void answer(http::Request request, http::Respond respond) {
    ApiCall call{.request = std::move(request), .who = who_};
    call.still_valid = [this] { return valid_; };
    router_.handle(std::move(call), std::move(respond));
  }

  /// Submits a job, which starts soon; returns its id.
  std::string submit(const std::string& name, const std::string& project = "default") {
    std::string id;
    server_.on_loop([&] {
      const auto job = controller_->submit(control::single(name, project, 0), "");
      EXPECT_TRUE(job) << job.error().to_string();
      if (job) id = job->id;
    });
    settle();
    return id;
  }

  void add_project(const std::string& name) {
    server_.on_loop([&] {
      const auto added = controller_->projects().create(control::project_of(name, 1));
      EXPECT_TRUE(added) << added.error().to_string();
    });
  }

  void end(const std::string& id) {
    server_.on_loop(
        [&] { engine_->end({id, (*controller_->jobs().find(id))->attempt}, "main", {}); });
    settle();
  }

  void remove(const std::string& id) {
    server_.on_loop([&] { EXPECT_TRUE(controller_->remove(id)); });
  }

  void print(const std::string& id, const std::string& bytes) {
    server_.on_loop([&] {
      engine_->append({id, 1}, "main", {clock_.now(), job::LogStream::kOutput, bytes, {}});
    });
  }

  /// Waits until all pending work is done.
  void settle() {
    for (int turn = 0; turn < 20; ++turn) server_.on_loop([] {});
  }

  api::Client client() { return api::Client(server_.socket()); }

  control::MortalStore store_;
  base::FakeClock clock_;
  base::FakeRandom random_;
  access::Identity who_ = access::local_identity("root");
  bool valid_ = true;
  Router router_;
  RequestCounts requests_;
  std::unique_ptr<control::GrowingLogs> engine_;
  std::unique_ptr<control::Controller> controller_;
  http::TestServer server_{[this](http::Request request, http::Respond respond) {
    answer(std::move(request), std::move(respond));
  }};
};

}  // namespace muster::server
