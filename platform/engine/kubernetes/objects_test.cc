#include "engine/kubernetes/objects.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/test_folder.h"
#include "base/test_loop.h"
#include "engine/kubernetes/test_fake_api_server.h"

namespace muster::engine::kubernetes {
namespace {

/// An API server that is slow to create a Secret: a deletion that arrives meanwhile overtakes the
/// creation.
class SlowSecrets {
 public:
  /// `changed`: called on the server's thread.
  explicit SlowSecrets(std::function<void()> changed)
      : changed_(std::move(changed)),
        server_([this](const http::Request& request, http::Respond respond) {
          take(request, std::move(respond));
        }) {}

  std::filesystem::path socket() const { return server_.socket(); }
  bool is_creating() {
    return ask([this] { return creation_ != nullptr; });
  }
  bool has_secret() {
    return ask([this] { return has_secret_; });
  }
  void finish_creation() {
    server_.on_loop([this] { create(); });
  }

 private:
  bool ask(const std::function<bool()>& question) {
    bool answer = false;
    server_.on_loop([&] { answer = question(); });
    return answer;
  }

  void take(const http::Request& request, http::Respond respond) {
    if (request.method == "POST") {
      creation_ = std::move(respond);
    } else if (request.method != "DELETE") {
      respond({.body = "ok"});
    } else if (std::exchange(has_secret_, false)) {
      respond({.body = R"({"kind":"Status","status":"Success"})"});
    } else {
      respond(FakeApiServer::refusal(404, "NotFound", "no such secret"));
      create();
    }
    changed_();
  }
  void create() {
    const auto creation = std::exchange(creation_, nullptr);
    if (!creation) return;
    has_secret_ = true;
    creation({.status = 201, .body = R"({"kind":"Secret","metadata":{"uid":"u","name":"x"}})"});
  }

  std::function<void()> changed_;
  http::Respond creation_;
  bool has_secret_ = false;
  http::TestServer server_;  ///< last: its thread uses the others
};

class ObjectsOfGang : public testing::Test, protected base::TestLoop {
 protected:
  ObjectsOfGang() {
    gang_->job.name = "train";
    gang_->job.project = "vision";
    gang_->job.owner = "ada";
    gang_->job.is_single = true;
  }

  base::TestFolder folder_;
  SlowSecrets secrets_{[this] { loop().post([this] { look(); }); }};
  lent::GangTable shared_{loop(), pod_table_options(folder_ / "jobs")};
  PodGangTable table_{shared_, "owner"};
  const PodSite site_{.owner = "owner", .space = "lab", .node_image = "muster-node:1"};
  ApiClient client_{loop(), std::make_unique<FakeAccess>(secrets_.socket()), {}};
  GangObjects objects_{loop(),
                       client_,
                       site_,
                       table_,
                       {.admit = [](const PodGangPointer&) { return true; },
                        .brief_of = [](const PodGang&) { return std::string("the brief"); },
                        .changed = [](const PodGangPointer&) {}}};
  const PodGangPointer gang_ = table_.add({.job_id = "job", .attempt = 1}, rsh::Key{});
};

TEST_F(ObjectsOfGang, AnOwnerThatIsBeingCreatedIsDeletedAfterItsCreation) {
  bool is_released = false;
  gang_->when_released.emplace_back([&] {
    is_released = true;
    look();
  });
  objects_.create(gang_);
  ASSERT_TRUE(run_until([&] { return secrets_.is_creating(); }));

  objects_.release(gang_);
  // A deletion that was sent at once would arrive before this request.
  bool has_passed = false;
  const auto timer = loop().after(std::chrono::milliseconds(1), [&] {
    has_passed = true;
    look();
  });
  ASSERT_TRUE(run_until([&] { return has_passed; }));
  Call call;
  ASSERT_TRUE(answer<std::string>([&](auto then) { call = client_.get_path("/readyz", then); }));
  secrets_.finish_creation();

  ASSERT_TRUE(run_until([&] { return is_released; }));
  EXPECT_FALSE(secrets_.has_secret()) << "it contains the key of the attempt";
  EXPECT_EQ(table_.find(gang_->gang), nullptr);
}

}  // namespace
}  // namespace muster::engine::kubernetes
