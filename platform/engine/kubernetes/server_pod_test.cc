#include "engine/kubernetes/server_pod.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/test_loop.h"
#include "engine/kubernetes/test_fake_api_server.h"

namespace muster::engine::kubernetes {
namespace {

using std::chrono::milliseconds;

const std::string kPatchPod = "PATCH /api/v1/namespaces/lab/pods/muster-1";

class OwnPodTest : public testing::Test, protected base::TestLoop {
 protected:
  /// An answer that wakes the test.
  FakeApiServer::Answer waking(http::Response answer) {
    return [this, answer = std::move(answer)](const http::Request&) {
      loop().post([this] { look(); });
      return answer;
    };
  }

  /// The values that the label got so far.
  std::vector<std::string> labels() const {
    std::vector<std::string> found;
    for (const http::Request& request : server_.asked()) {
      found.push_back(Json::parse(request.body)["metadata"]["labels"][kLeadsLabel].dump());
    }
    return found;
  }

  bool await(const std::vector<std::string>& expected) {
    return run_until([&] { return labels() == expected; });
  }

  FakeApiServer server_;
  ServerPod pod_{
      loop(), std::make_unique<FakeAccess>(server_.socket()), ObjectName{kPods, "lab", "muster-1"},
      ApiOptions{.patience = milliseconds(0), .first_pause = milliseconds(1)}, milliseconds(1)};
};

TEST_F(OwnPodTest, GetsTheLabelWhenItLeadsAndLosesItWhenItWaits) {
  server_.on(kPatchPod, waking({.body = "{}"}));

  pod_.set_leads(false);
  EXPECT_TRUE(await({"null"}));
  pod_.set_leads(true);
  EXPECT_TRUE(await({"null", "\"true\""}));
  EXPECT_EQ(server_.asked().front().headers.at("content-type"), "application/merge-patch+json");
}

TEST_F(OwnPodTest, RepeatsARefusedRequest) {
  const auto refusal = FakeApiServer::refusal(403, "Forbidden", "pods is forbidden");
  server_.on(kPatchPod, {waking(refusal), waking(refusal), waking({.body = "{}"})});

  pod_.set_leads(true);

  EXPECT_TRUE(await({"\"true\"", "\"true\"", "\"true\""}));
}

TEST(ServerPod, IsNotLabelledWithoutTheVariableOfTheChart) {
  base::TestLoop loop;
  const auto pod = server_pod(loop.loop(), {"KUBERNETES_SERVICE_HOST=127.0.0.1"});
  ASSERT_TRUE(pod);
  EXPECT_EQ(*pod, nullptr);
}

}  // namespace
}  // namespace muster::engine::kubernetes
