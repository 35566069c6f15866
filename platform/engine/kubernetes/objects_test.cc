#include "engine/kubernetes/objects.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/files.h"
#include "base/test_folder.h"
#include "base/test_loop.h"
#include "engine/kubernetes/preparations.h"
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
                       std::chrono::hours(1),
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

// --- refusals

TEST(MayPass, RefusalsOfBusyServersAndOfQuotasPass) {
  struct Case {
    int status;
    const char* reason;
    const char* message;
    bool passes;
  };
  const Case cases[] = {
      {400, "BadRequest", "", false},
      {403, "Forbidden", "pods is forbidden: exceeded quota: gpus", true},
      {403, "Forbidden", "violates PodSecurity", false},
      {404, "NotFound", "namespaces not found", false},
      {409, "AlreadyExists", "pods 'x' already exists", true},
      {409, "Conflict", "Operation cannot be fulfilled on resourcequotas: object was modified",
       true},
      {422, "Invalid", "", false},
      {429, "TooManyRequests", "", true},
      {500, "InternalError", "failed calling webhook: context deadline exceeded", true},
      {500, "", "etcdserver: leader changed", true},
      {503, "ServiceUnavailable", "", true},
      {504, "Timeout", "", true},
  };
  for (const Case& each : cases) {
    ApiRefusal refusal;
    refusal.status = each.status;
    refusal.reason_code = each.reason;
    refusal.message = each.message;
    EXPECT_EQ(may_pass(error_of(refusal, "cannot create it", "the server")), each.passes)
        << each.status << " " << each.message;
  }
}

/// A gang of two tasks, whose objects a fake API server accepts or refuses.
class ObjectsOfRefusedGang : public testing::Test, protected base::TestLoop {
 protected:
  ObjectsOfRefusedGang() {
    server_.on(owners_, accepted("owner"));
    server_.on(services_, accepted("service"));
    server_.on(policies_, accepted("policy"));
    server_.on(pods_path_, accepted("pod"));
    EXPECT_TRUE(base::make_private_folder(first_server_.shared.attempt_folder(id_)));
  }

  static http::Response accepted(const std::string& uid) {
    return {.status = 201, .body = R"({"metadata":{"name":"x","uid":")" + uid + R"("}})"};
  }
  static FakeApiServer::Answer answer_with(http::Response response) {
    return [response = std::move(response)](const http::Request&) { return response; };
  }
  static FakeApiServer::Answer no_quota() {
    return answer_with(FakeApiServer::refusal(403, "Forbidden", "it exceeded quota: small"));
  }
  static FakeApiServer::Answer exists() {
    return answer_with(FakeApiServer::refusal(409, "AlreadyExists", "it already exists"));
  }

  /// A server's part of the work.
  struct Server {
    explicit Server(ObjectsOfRefusedGang& test,
                    std::chrono::milliseconds pod_timeout = std::chrono::hours(1))
        : shared(test.loop(), pod_table_options(test.folder_ / "jobs")),
          table(shared, "owner"),
          objects(test.loop(), test.client_, test.site_, table, pod_timeout,
                  {.closed = [&test] { return test.closed_; },
                   .admit = [](const PodGangPointer&) { return true; },
                   .brief_of = [](const PodGang&) { return std::string("the brief"); },
                   .changed =
                       [&test, this](const PodGangPointer& gang) {
                         preparations.look(gang);
                         test.look();
                       }}),
          preparations(
              test.loop(), std::chrono::hours(1),
              {.outage = [] { return std::nullopt; },
               .given_up = [](const PodGangPointer&, const std::vector<std::string>&) {}}) {}
    lent::GangTable shared;
    PodGangTable table;
    GangObjects objects;
    Preparations preparations;
  };

  void request_pods(Server& server, const PodGangPointer& gang) {
    gang->job.name = "train";
    gang->job.project = "vision";
    gang->job.owner = "ada";
    for (const char* const task : {"main", "worker-0"}) {
      HeldPod& pod = server.table.add_task(gang, task);
      pod.plan.task = pod.plan.hostname = task;
      pod.plan.node = "n1";
      pod.plan.image = "pytorch:2";
      pod.is_desired = true;
    }
    preparation_ = server.preparations.add(
        gang, {"main", "worker-0"},
        [this](const job::Fact& fact) {
          if (const auto* const waits = std::get_if<job::KubernetesWaits>(&fact)) {
            wait_text_ = waits->text;
          }
          look();
        },
        [](const base::Result<void>&) {});
  }
  static bool has_pods(const PodGang& gang) {
    return gang.pods.at("main").is_created && gang.pods.at("worker-0").is_created;
  }

  const std::string owners_ = "POST /api/v1/namespaces/lab/secrets";
  const std::string services_ = "POST /api/v1/namespaces/lab/services";
  const std::string policies_ = "POST /apis/networking.k8s.io/v1/namespaces/lab/networkpolicies";
  const std::string pods_path_ = "POST /api/v1/namespaces/lab/pods";
  const GangId id_{.job_id = "job", .attempt = 1};
  base::TestFolder folder_;
  FakeApiServer server_;
  const PodSite site_{.owner = "owner", .space = "lab", .node_image = "muster-node:1"};
  ApiClient client_{loop(), std::make_unique<FakeAccess>(server_.socket()),
                    ApiOptions{.patience = std::chrono::milliseconds(0)}};
  Server first_server_{*this};
  std::optional<base::Error> closed_;  ///< why no pod can call the server
  std::shared_ptr<void> preparation_;
  std::string wait_text_;
};

TEST_F(ObjectsOfRefusedGang, APodIsCreatedAfterAConflictAndAnErrorOfTheServer) {
  server_.on(pods_path_,
             {answer_with(FakeApiServer::refusal(
                  409, "Conflict", "Operation cannot be fulfilled on resourcequotas")),
              answer_with(FakeApiServer::refusal(500, "InternalError", "leader changed")),
              answer_with(accepted("pod"))});
  const PodGangPointer gang = first_server_.table.add(id_, rsh::Key{});
  request_pods(first_server_, gang);

  first_server_.objects.create(gang);

  EXPECT_TRUE(run_until([&] { return gang->fault || has_pods(*gang); }));
  EXPECT_FALSE(gang->fault);
  EXPECT_EQ(server_.count(pods_path_), 4U);
}

TEST_F(ObjectsOfRefusedGang, NothingIsCreatedWhileNoPodCouldCallTheServer) {
  closed_ = base::Error{.code = base::ErrorCode::kConflict, .what = "port 7445 is in use"};
  const PodGangPointer gang = first_server_.table.add(id_, rsh::Key{});
  request_pods(first_server_, gang);

  first_server_.objects.create(gang);

  ASSERT_TRUE(run_until([&] { return !wait_text_.empty(); }));
  EXPECT_EQ(wait_text_, "port 7445 is in use");
  EXPECT_EQ(server_.count(owners_), 0U);
  closed_.reset();
  ASSERT_TRUE(run_until([&] { return has_pods(*gang); }));
  EXPECT_FALSE(gang->refusal);
}

TEST_F(ObjectsOfRefusedGang, NoPodIsCreatedBeforeTheServiceAndTheNetworkPolicyAreAccepted) {
  server_.on(services_, {no_quota(), answer_with(accepted("service"))});
  const PodGangPointer gang = first_server_.table.add(id_, rsh::Key{});
  request_pods(first_server_, gang);

  first_server_.objects.create(gang);

  ASSERT_TRUE(run_until([&] { return !wait_text_.empty(); }));
  EXPECT_NE(wait_text_.find("exceeded quota"), std::string::npos) << wait_text_;
  EXPECT_EQ(server_.count(pods_path_), 0U);
  ASSERT_TRUE(run_until([&] { return has_pods(*gang); }));
  EXPECT_EQ(server_.count(services_), 2U);
  EXPECT_EQ(server_.count(policies_), 1U);
}

/// As by an admission webhook whose certificate has expired.
TEST_F(ObjectsOfRefusedGang, ErrorsOfTheServerThatLastAreGivenUp) {
  Server impatient(*this, std::chrono::milliseconds(0));
  std::vector<PodGangPointer> gangs;
  std::vector<std::shared_ptr<void>> preparations;
  for (const std::string& creation : {owners_, policies_, pods_path_}) {
    const GangId id{.job_id = "job" + std::to_string(gangs.size()), .attempt = 1};
    gangs.push_back(impatient.table.add(id, rsh::Key{}));
    server_.on(creation, [name = gang_name("owner", id)](const http::Request& request) {
      const bool fails = request.body.find(name) != std::string::npos;
      return fails ? FakeApiServer::refusal(500, "InternalError", "failed calling webhook")
                   : accepted("object");
    });
    request_pods(impatient, gangs.back());
    preparations.push_back(std::exchange(preparation_, nullptr));
  }

  for (const PodGangPointer& gang : gangs) impatient.objects.create(gang);

  for (const PodGangPointer& gang : gangs) {
    ASSERT_TRUE(run_until([&] { return gang->fault.has_value(); })) << gang->gang.job_id;
    EXPECT_NE(gang->fault->what.find("failed calling webhook"), std::string::npos);
  }
  EXPECT_EQ(server_.count(owners_), 4U) << "the first error may pass";
  EXPECT_EQ(server_.count(policies_), 3U);
}

TEST_F(ObjectsOfRefusedGang, AQuotaBetweenErrorsOfTheServerIsAwaited) {
  const auto failed = answer_with(FakeApiServer::refusal(503, "ServiceUnavailable", "it starts"));
  server_.on(services_, {failed, no_quota(), failed, answer_with(accepted("service"))});
  Server impatient(*this, std::chrono::milliseconds(0));
  const PodGangPointer gang = impatient.table.add(id_, rsh::Key{});
  request_pods(impatient, gang);

  impatient.objects.create(gang);

  EXPECT_TRUE(run_until([&] { return gang->fault || has_pods(*gang); }));
  EXPECT_FALSE(gang->fault);
}

TEST_F(ObjectsOfRefusedGang, ANetworkPolicyOfAnEarlierOwnerIsNotTheGangs) {
  server_.on(policies_, {exists(), answer_with(accepted("policy"))});
  const PodGangPointer gang = first_server_.table.add(id_, rsh::Key{});
  request_pods(first_server_, gang);

  first_server_.objects.create(gang);

  ASSERT_TRUE(run_until([&] { return has_pods(*gang); }));
  EXPECT_EQ(server_.count(policies_), 2U);
}

TEST_F(ObjectsOfRefusedGang, TheNextServerCreatesTheObjectsThatAreMissing) {
  server_.on(policies_, {no_quota(), answer_with(accepted("policy"))});
  const PodGangPointer first = first_server_.table.add(id_, rsh::Key{});
  request_pods(first_server_, first);
  first_server_.objects.create(first);
  ASSERT_TRUE(run_until([&] { return !wait_text_.empty() && first->missing.size() == 1; }));
  preparation_.reset();
  first->missing.clear();  // the server dies
  server_.on(services_, exists());

  Server next(*this);
  ASSERT_TRUE(next.table.load());
  const PodGangPointer gang = next.table.find(id_);
  ASSERT_NE(gang, nullptr);
  request_pods(next, gang);
  next.objects.create(gang);

  ASSERT_TRUE(run_until([&] { return has_pods(*gang); }));
  EXPECT_EQ(server_.count(owners_), 1U);
  EXPECT_EQ(server_.count(services_), 2U);
  EXPECT_EQ(server_.count(policies_), 2U);

  next.table.save(gang);
  Server last(*this);
  ASSERT_TRUE(last.table.load());
  ASSERT_NE(last.table.find(id_), nullptr);
  EXPECT_TRUE(last.table.find(id_)->has_others);
}

}  // namespace
}  // namespace muster::engine::kubernetes
