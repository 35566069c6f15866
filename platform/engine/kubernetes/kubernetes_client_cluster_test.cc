// The client on a real cluster: an API server, its storage, and kubelets. tests/kubernetes_client.py
// runs this program: it starts the cluster, and calls it for the tests that kill a program.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/subprocess.h"
#include "base/test_loop.h"
#include "engine/kubernetes/access.h"
#include "engine/kubernetes/api_client.h"
#include "engine/kubernetes/streams.h"
#include "engine/kubernetes/watch.h"

namespace muster::engine::kubernetes {
namespace {

using base::ErrorCode;
using base::Result;
using std::chrono::milliseconds;

constexpr size_t kMegabyte = 1 << 20;

std::string set_variable(const char* name) {
  const char* value = std::getenv(name);
  EXPECT_NE(value, nullptr) << name << " is not set: run tests/kubernetes_client.py";
  return value == nullptr ? "" : value;
}

/// Whether the cluster behaves like Kubernetes 1.29, which has neither v5 streams nor lists over a
/// watch.
bool is_like_1_29() {
  return set_variable("MUSTER_KUBERNETES_LIKE") == "1.29";
}

/// Bytes that differ from place to place.
std::string pattern(size_t size) {
  std::string text(size, '\0');
  uint32_t state = 1;
  for (char& letter : text) {
    state = state * 1664525 + 1013904223;
    letter = static_cast<char>(state >> 24);
  }
  return text;
}

class ClusterClient : public testing::Test, protected base::TestLoop {
 protected:
  ClusterClient() { client_ = open(set_variable("KUBECONFIG")); }
  ~ClusterClient() override {
    if (client_ == nullptr || space_.empty()) return;
    static_cast<void>(
        ask<void>([&](auto then) { return client_->remove({kNamespaces, "", space_}, {}, then); }));
  }

  std::unique_ptr<ApiClient> open(const std::string& kubeconfig, ApiOptions options = {}) {
    options.version = "test";
    auto access = open_access(
        loop(), {.kubeconfig = {kubeconfig}, .environment = base::current_environment()});
    EXPECT_TRUE(access) << access.error().to_string();
    if (!access) return nullptr;
    return std::make_unique<ApiClient>(loop(), *std::move(access), std::move(options));
  }

  template <class Value, class Ask>
  Result<Value> ask(Ask ask) {
    Call call;
    return answer<Value>([&](auto then) { call = ask(then); });
  }

  void wait(milliseconds time) {
    bool passed = false;
    const auto timer = loop().after(time, [&] {
      passed = true;
      look();
    });
    run_until([&] { return passed; });
  }

  /// A namespace for this test, in which pods can be created.
  const std::string& space() {
    if (!space_.empty()) return space_;
    base::SystemRandom random;
    space_ = "client-" + base::random_name(random, 6);
    const Json object{
        {"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", space_}}}};
    const auto made =
        ask<Json>([&](auto then) { return client_->create(kNamespaces, "", object, then); });
    EXPECT_TRUE(made) << made.error().to_string();
    for (int i = 0; i < 200; ++i) {
      if (ask<Json>([&](auto then) {
            return client_->get({{.plural = "serviceaccounts"}, space_, "default"}, then);
          })) {
        break;
      }
      wait(milliseconds(50));
    }
    return space_;
  }

  static Json config_map(const std::string& name, const std::string& value) {
    return {{"apiVersion", "v1"},
            {"kind", "ConfigMap"},
            {"metadata", {{"name", name}, {"labels", {{"set", "a"}}}}},
            {"data", {{"key", value}}}};
  }
  Result<Json> create_map(const std::string& name, const std::string& value = "1") {
    return ask<Json>([&](auto then) {
      return client_->create(kConfigMaps, space(), config_map(name, value), then);
    });
  }

  /// A pod that runs a shell script.
  static Json shell_pod(const std::string& name, const std::string& script) {
    return {{"apiVersion", "v1"},
            {"kind", "Pod"},
            {"metadata", {{"name", name}}},
            {"spec",
             {{"restartPolicy", "Never"},
              {"terminationGracePeriodSeconds", 0},
              {"containers",
               {{{"name", "main"},
                 {"image", set_variable("MUSTER_KUBERNETES_IMAGE")},
                 {"imagePullPolicy", "Never"},
                 {"command", {"/bin/busybox", "sh", "-c", script}}}}}}}};
  }

  /// Starts a pod and waits until it runs.
  Json start_pod(const std::string& name, const std::string& script) {
    return start_pod(shell_pod(name, script));
  }
  Json start_pod(const Json& pod) {
    const std::string name = pod["metadata"]["name"];
    const auto made =
        ask<Json>([&](auto then) { return client_->create(kPods, space(), pod, then); });
    EXPECT_TRUE(made) << made.error().to_string();
    Json running;
    const Watch watch(*client_,
                      {.resource = kPods, .space = space(), .fields = "metadata.name=" + name},
                      {.on_object =
                           [&](const Json& seen) {
                             if (seen["status"].value("phase", "") == "Running") running = seen;
                             look();
                           },
                       .on_gone = [](const ObjectKey&, const Json*) {}});
    EXPECT_TRUE(run_until([&] { return !running.is_null(); }));
    return running;
  }

  struct Ended {
    Result<CommandEnd> end = CommandEnd{};
    std::string output;
    std::string errors;
    std::string protocol;
  };

  /// Runs a command with this input. Its end is sent if the protocol supports that.
  Ended run_in(const std::string& pod, std::vector<std::string> argv, const std::string& input,
               const StreamOptions& options, bool has_terminal = false) {
    Ended ended;
    std::optional<Result<CommandEnd>> end;
    std::unique_ptr<PodStream> stream;
    size_t written = 0;
    const auto write_more = [&] {
      while (written < input.size() && stream->waiting() <= PodStream::kHigh) {
        const std::string_view piece = std::string_view(input).substr(written, 64 << 10);
        stream->write(piece);
        written += piece.size();
      }
    };
    auto opened = ask<std::unique_ptr<PodStream>>([&](auto then) {
      return open_stream(
          *client_,
          {.space = space(),
           .pod = pod,
           .argv = std::move(argv),
           .has_input = !input.empty(),
           .has_terminal = has_terminal},
          {.on_output = [&](std::string_view bytes,
                            bool is_error) { (is_error ? ended.errors : ended.output) += bytes; },
           .on_end = into(end),
           .on_drain =
               [&] {
                 write_more();
                 if (written == input.size()) stream->close_input();
               }},
          then, options);
    });
    if (!opened) {
      ended.end = opened.error();
      return ended;
    }
    stream = *std::move(opened);
    ended.protocol = stream->protocol();
    write_more();
    if (written == input.size() && !input.empty()) stream->close_input();
    EXPECT_TRUE(run_until([&] { return end.has_value(); }));
    if (end) ended.end = *end;
    return ended;
  }

  /// Calls a method of the cluster.
  static void call_cluster(const std::string& words) {
    EXPECT_EQ(std::system((set_variable("MUSTER_KUBERNETES_CALL") + " " + words).c_str()), 0)
        << words;
  }

  std::unique_ptr<ApiClient> client_;
  std::string space_;
};

const StreamOptions kNewest;
const StreamOptions kV4{.protocols = {"v4.channel.k8s.io"}};

// --- objects

TEST_F(ClusterClient, ReadsTheVersionAndReadinessOfTheServer) {
  const auto version = ask<ServerVersion>([&](auto then) { return client_->version(then); });
  ASSERT_TRUE(version) << version.error().to_string();
  EXPECT_EQ(version->major, 1);
  EXPECT_GE(version->minor, 29);
  const auto ready =
      ask<std::string>([&](auto then) { return client_->get_path("/readyz", then); });
  ASSERT_TRUE(ready);
  EXPECT_EQ(*ready, "ok");
}

TEST_F(ClusterClient, CreatesGetsPatchesAndDeletes) {
  const auto made = create_map("one");
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ((*made)["metadata"]["managedFields"][0]["manager"], "muster");
  const ObjectName name{kConfigMaps, space(), "one"};

  const auto again = create_map("one");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(has_reason(again.error(), "AlreadyExists"));

  const auto patched = ask<Json>([&](auto then) {
    return client_->patch(name, PatchType::kMerge, Json{{"data", {{"key", "2"}}}}, then);
  });
  ASSERT_TRUE(patched) << patched.error().to_string();
  EXPECT_EQ((*patched)["data"]["key"], "2");
  const auto failed = ask<Json>([&](auto then) {
    return client_->patch(name, PatchType::kJson,
                          Json::array({{{"op", "test"}, {"path", "/data/key"}, {"value", "1"}}}),
                          then);
  });
  EXPECT_FALSE(failed);

  const auto remove = [&](const DeleteOptions& options) {
    return ask<void>([&](auto then) { return client_->remove(name, options, then); });
  };
  const auto refused = remove({.uid = "00000000-0000-0000-0000-000000000000"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(remove({.uid = (*made)["metadata"]["uid"]}));
  EXPECT_TRUE(remove({}));
  const auto missing = ask<Json>([&](auto then) { return client_->get(name, then); });
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

TEST_F(ClusterClient, AppliesAndRespectsOtherManagers) {
  const ObjectName name{kConfigMaps, space(), "applied"};
  const auto apply = [&](ApiClient& client, const std::string& value, bool force) {
    return ask<Json>([&](auto then) {
      return client.apply(name, config_map("applied", value), {.force = force}, then);
    });
  };
  ASSERT_TRUE(apply(*client_, "1", false));
  ASSERT_TRUE(apply(*client_, "2", false));
  const auto other = open(set_variable("KUBECONFIG"), {.field_manager = "other"});
  const auto conflict = apply(*other, "3", false);
  ASSERT_FALSE(conflict);
  EXPECT_EQ(conflict.error().code, ErrorCode::kConflict);
  const auto forced = apply(*other, "3", true);
  ASSERT_TRUE(forced);
  EXPECT_EQ((*forced)["data"]["key"], "3");
}

TEST_F(ClusterClient, ListsInPagesAndDeletesMany) {
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(create_map("m" + std::to_string(i)));
  const auto paging = open(set_variable("KUBECONFIG"), {.page = 3});
  const Selection which{.resource = kConfigMaps, .space = space(), .labels = "set=a"};
  const auto list = [&] {
    return ask<ApiClient::Listed>([&](auto then) { return paging->list(which, then); });
  };
  const auto listed = list();
  ASSERT_TRUE(listed) << listed.error().to_string();
  EXPECT_EQ(listed->objects.size(), 7U);
  EXPECT_FALSE(listed->resource_version.empty());
  EXPECT_EQ(paging->counts().at({"list", "configmaps"}), 3U);

  EXPECT_TRUE(ask<void>([&](auto then) { return client_->remove_all(which, {}, then); }));
  EXPECT_TRUE(list()->objects.empty());
}

TEST_F(ClusterClient, AnInvalidObjectHasItsFaults) {
  Json pod = shell_pod("bad", "true");
  pod["spec"]["containers"][0]["image"] = "";
  pod["spec"]["restartPolicy"] = "Sometimes";
  const auto made =
      ask<Json>([&](auto then) { return client_->create(kPods, space(), pod, then); });
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kInvalid);
  std::set<std::string> fields;
  for (const base::Fault& fault : made.error().faults) fields.insert(fault.field);
  EXPECT_TRUE(fields.contains("spec.containers[0].image")) << made.error().to_string();
  EXPECT_TRUE(fields.contains("spec.restartPolicy")) << made.error().to_string();
}

TEST_F(ClusterClient, OneConnectionServesManyRequests) {
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(ask<std::string>([&](auto then) { return client_->get_path("/readyz", then); }));
  }
  std::vector<Call> calls;
  int answers = 0;
  for (int i = 0; i < 200; ++i) {
    calls.push_back(client_->get_path("/readyz", [&](const Result<std::string>& answer) {
      EXPECT_TRUE(answer) << answer.error().to_string();
      ++answers;
      look();
    }));
  }
  EXPECT_TRUE(run_until([&] { return answers == 200; }));
}

// --- rights

TEST_F(ClusterClient, AMissingRightIsNamed) {
  const auto weak = open(set_variable("MUSTER_KUBERNETES_WEAK"));
  const auto refused = ask<Json>(
      [&](auto then) { return weak->create(kPods, "default", shell_pod("x", "true"), then); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_NE(refused.error().what.find("cannot create resource \"pods\" in API group \"\" in the "
                                      "namespace \"default\""),
            std::string::npos)
      << refused.error().what;

  const auto may = [&](ApiClient& client, const std::string& verb) {
    const auto answer = ask<AccessAnswer>([&](auto then) {
      return client.may_i({.verb = verb, .resource = kPods, .space = "default"}, then);
    });
    EXPECT_TRUE(answer);
    return answer && answer->allowed;
  };
  EXPECT_TRUE(may(*client_, "create"));
  EXPECT_FALSE(may(*weak, "create"));
  EXPECT_TRUE(may(*weak, "get"));
}

TEST_F(ClusterClient, AnExpiredCertificateIsRefused) {
  const auto expired = open(set_variable("MUSTER_KUBERNETES_EXPIRED"));
  const auto refused =
      ask<ApiClient::Listed>([&](auto then) { return expired->list({.resource = kNodes}, then); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused) << refused.error().to_string();
}

// --- watches

/// The reports of a watch of config maps.
struct Seen {
  std::map<std::string, std::string> values;
  int synced = 0;
  int outdated = 0;
  int current = 0;

  WatchHandlers handlers(std::function<void()> look) {
    return {.on_object =
                [this, look](const Json& object) {
                  values[object["metadata"]["name"]] = object["data"].value("key", "");
                  look();
                },
            .on_gone =
                [this, look](const ObjectKey& key, const Json*) {
                  values.erase(key.name);
                  look();
                },
            .on_synced =
                [this, look] {
                  ++synced;
                  look();
                },
            .on_outdated =
                [this, look](const base::Error&) {
                  ++outdated;
                  look();
                },
            .on_current =
                [this, look] {
                  ++current;
                  look();
                }};
  }
};

using Values = std::map<std::string, std::string>;

TEST_F(ClusterClient, AWatchFollowsChanges) {
  for (const bool streams : {true, false}) {
    const std::string tag = streams ? "s" : "p";
    ASSERT_TRUE(create_map("a" + tag));
    ASSERT_TRUE(create_map("b" + tag));
    const auto watching = open(set_variable("KUBECONFIG"), {.page = 1});
    Seen seen;
    const Watch watch(*watching, {.resource = kConfigMaps, .space = space(), .labels = "set=a"},
                      seen.handlers([&] { look(); }), {.streams_list = streams});
    ASSERT_TRUE(run_until([&] { return seen.synced == 1; }));
    EXPECT_EQ(seen.values, (Values{{"a" + tag, "1"}, {"b" + tag, "1"}}));
    const bool has_streamed = streams && !is_like_1_29();
    EXPECT_EQ(watching->counts().contains({"list", "configmaps"}), !has_streamed);
    EXPECT_EQ(watching->counts().at({"watch", "configmaps"}), streams && is_like_1_29() ? 2U : 1U);

    ASSERT_TRUE(create_map("c" + tag));
    for (const std::string& name : {"a" + tag, "b" + tag}) {
      if (name.starts_with("a")) {
        ASSERT_TRUE(ask<Json>([&](auto then) {
          return client_->patch({kConfigMaps, space(), name}, PatchType::kMerge,
                                Json{{"data", {{"key", "2"}}}}, then);
        }));
      } else {
        ASSERT_TRUE(ask<void>(
            [&](auto then) { return client_->remove({kConfigMaps, space(), name}, {}, then); }));
      }
    }
    EXPECT_TRUE(
        run_until([&] { return seen.values == Values{{"a" + tag, "2"}, {"c" + tag, "1"}}; }));
    ASSERT_TRUE(ask<void>([&](auto then) {
      return client_->remove_all({.resource = kConfigMaps, .space = space(), .labels = "set=a"}, {},
                                 then);
    }));
    EXPECT_TRUE(run_until([&] { return seen.values.empty(); }));
  }
}

TEST_F(ClusterClient, AWatchContinuesAfterItsTimeLimit) {
  ASSERT_TRUE(create_map("a"));
  Seen seen;
  const Watch watch(*client_, {.resource = kConfigMaps, .space = space(), .labels = "set=a"},
                    seen.handlers([&] { look(); }), {.length = std::chrono::seconds(1)});
  ASSERT_TRUE(run_until([&] { return seen.synced == 1; }));
  while (client_->counts().at({"watch", "configmaps"}) < 3) wait(milliseconds(100));
  ASSERT_TRUE(create_map("b"));
  EXPECT_TRUE(run_until([&] { return seen.values.size() == 2; }));
  EXPECT_EQ(seen.synced, 1) << "it has listed again";
  EXPECT_EQ(seen.outdated, 0);
}

TEST_F(ClusterClient, AnOutdatedPositionIsRefusedAsGone) {
  // What a Watch meets after a long outage. (Positions that etcd still has are not refused.)
  const auto answer = ask<std::string>([&](auto then) {
    return client_->get_path("/api/v1/namespaces/default/configmaps?limit=1&continue=bad", then);
  });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalid);
}

TEST_F(ClusterClient, AnApiServerThatIsKilledAndReturnsIsFollowed) {
  ASSERT_TRUE(create_map("a"));
  Seen seen;
  const Watch watch(*client_, {.resource = kConfigMaps, .space = space(), .labels = "set=a"},
                    seen.handlers([&] { look(); }), {.longest_pause = milliseconds(1000)});
  ASSERT_TRUE(run_until([&] { return seen.synced == 1; }));

  call_cluster("kill apiserver");
  EXPECT_TRUE(run_until([&] { return seen.outdated > 0; }));
  const auto hasty = open(set_variable("KUBECONFIG"), {.patience = milliseconds(500)});
  const auto away =
      ask<Json>([&](auto then) { return hasty->get({kConfigMaps, space(), "a"}, then); });
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().code, ErrorCode::kUnavailable) << away.error().to_string();
  // A request that is pending while the API server comes back.
  const auto patient = open(set_variable("KUBECONFIG"), {.patience = std::chrono::minutes(2)});
  std::optional<Result<Json>> pending;
  const Call call = patient->create(kConfigMaps, space(), config_map("b", "1"), into(pending));
  wait(milliseconds(100));

  call_cluster("start apiserver");
  ASSERT_TRUE(run_until([&] { return pending.has_value(); }));
  EXPECT_TRUE(*pending) << pending->error().to_string();
  EXPECT_TRUE(run_until([&] { return seen.values.size() == 2 && seen.current > 0; }));
}

TEST_F(ClusterClient, ABusyApiServerIsAskedAgain) {
  const std::string kubeconfig = set_variable("MUSTER_KUBERNETES_WEAK");
  const auto hasty = open(kubeconfig, {.patience = milliseconds(0)});
  const auto patient = open(kubeconfig, {.patience = std::chrono::minutes(1)});
  const auto get = [](ApiClient& client, ApiClient::Then<Json> then) {
    return client.get({kPods, "default", "nobody"}, std::move(then));
  };
  call_cluster("refuse weak");
  // After a moment, the API server lets one request wait and refuses others.
  bool is_busy = false;
  while (!is_busy) {
    int answers = 0;
    std::vector<Call> calls;
    for (int i = 0; i < 4; ++i) {
      calls.push_back(get(*hasty, [&](const Result<Json>& pod) {
        ++answers;
        const ApiRefusal* refusal = refusal_of(pod.error());
        is_busy = is_busy || (refusal != nullptr && refusal->status == 429 && refusal->retry_after);
        look();
      }));
    }
    ASSERT_TRUE(run_until([&] { return is_busy || answers == 4; }));
  }
  int found_out = 0;
  std::vector<Call> calls;
  for (int i = 0; i < 4; ++i) {
    calls.push_back(get(*patient, [&](const Result<Json>& pod) {
      EXPECT_TRUE(has_reason(pod.error(), "NotFound")) << pod.error().to_string();
      ++found_out;
      look();
    }));
  }
  wait(milliseconds(1500));
  EXPECT_EQ(found_out, 0);
  call_cluster("accept weak");
  EXPECT_TRUE(run_until([&] { return found_out == 4; }));
  EXPECT_GT(patient->counts().at({"get", "pods"}), 4U);
}

// --- pods

TEST_F(ClusterClient, PodsAreBoundToNodes) {
  Json pod = shell_pod("bound", "sleep 100");
  pod["spec"]["schedulerName"] = "none";
  const auto made =
      ask<Json>([&](auto then) { return client_->create(kPods, space(), pod, then); });
  ASSERT_TRUE(made) << made.error().to_string();
  const auto bind = [&](const std::string& uid) {
    return ask<void>(
        [&](auto then) { return client_->bind(space(), "bound", uid, "node-2", then); });
  };
  EXPECT_FALSE(bind("00000000-0000-0000-0000-000000000000"));
  const auto bound = bind((*made)["metadata"]["uid"]);
  ASSERT_TRUE(bound) << bound.error().to_string();
  const auto again = bind((*made)["metadata"]["uid"]);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
  const auto seen =
      ask<Json>([&](auto then) { return client_->get({kPods, space(), "bound"}, then); });
  ASSERT_TRUE(seen);
  EXPECT_EQ((*seen)["spec"]["nodeName"], "node-2");
  EXPECT_TRUE(ask<void>([&](auto then) {
    return client_->evict(space(), "bound", {.uid = (*made)["metadata"]["uid"]}, then);
  }));
}

TEST_F(ClusterClient, ALogIsFollowedToItsEnd) {
  start_pod("logs",
            "i=0; while [ $i -lt 1000 ]; do echo line $i; i=$((i+1)); done; sleep 1; echo last");
  std::string log;
  const auto end = ask<void>([&](auto then) {
    return client_->logs(
        space(), "logs", {.container = "main", .follow = true},
        [&](std::string_view bytes) {
          log += bytes;
          return true;
        },
        then);
  });
  EXPECT_TRUE(end) << end.error().to_string();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1001);
  EXPECT_TRUE(log.ends_with("line 999\nlast\n"));
}

TEST_F(ClusterClient, CommandsRunInPods) {
  start_pod("exec", "sleep 1000");
  for (const StreamOptions& options : {kNewest, kV4}) {
    const auto ended =
        run_in("exec", {"/bin/busybox", "sh", "-c", "echo out; echo err >&2; exit 7"}, "", options);
    ASSERT_TRUE(ended.end) << ended.end.error().to_string();
    EXPECT_EQ(ended.end->exit_code, 7);
    EXPECT_EQ(ended.output, "out\n");
    EXPECT_EQ(ended.errors, "err\n");
    EXPECT_EQ(ended.protocol, is_like_1_29() ? kV4.protocols.front() : options.protocols.front());

    const auto missing = run_in("exec", {"/no/such/program"}, "", options);
    ASSERT_TRUE(missing.end) << missing.end.error().to_string();
    EXPECT_NE(missing.end->error.find("no such file"), std::string::npos) << missing.end->error;
  }
}

TEST_F(ClusterClient, InputAndOutputOfCommandsAreCompleteToTheByte) {
  start_pod("cat", "sleep 1000");
  const std::string sent = pattern(10 * kMegabyte);
  if (!is_like_1_29()) {
    const auto echoed = run_in("cat", {"/bin/busybox", "cat"}, sent, kNewest);
    ASSERT_TRUE(echoed.end) << echoed.end.error().to_string();
    EXPECT_EQ(echoed.end->exit_code, 0);
    EXPECT_TRUE(echoed.output == sent) << echoed.output.size() << " bytes";
  }
  // v4 cannot close the input: the command ends by itself.
  const auto counted =
      run_in("cat", {"/bin/busybox", "head", "-c", std::to_string(sent.size())}, sent, kV4);
  ASSERT_TRUE(counted.end) << counted.end.error().to_string();
  EXPECT_TRUE(counted.output == sent) << counted.output.size() << " bytes";
}

TEST_F(ClusterClient, ACommandMayHaveATerminal) {
  start_pod("tty", "sleep 1000");
  std::optional<Result<CommandEnd>> end;
  std::string output;
  auto stream = ask<std::unique_ptr<PodStream>>([&](auto then) {
    return open_stream(*client_,
                       {.space = space(),
                        .pod = "tty",
                        .argv = {"/bin/busybox", "sh"},
                        .has_input = true,
                        .has_terminal = true},
                       {.on_output =
                            [&](std::string_view bytes, bool) {
                              output += bytes;
                              look();
                            },
                        .on_end = into(end)},
                       then);
  });
  ASSERT_TRUE(stream) << stream.error().to_string();
  (*stream)->resize(123, 45);
  // The shell may read the size before the resize has arrived.
  (*stream)->write(
      "while ! /bin/busybox stty size | /bin/busybox grep '45 123'; do true; done; exit 4\n");
  ASSERT_TRUE(run_until([&] { return end.has_value(); }));
  ASSERT_TRUE(*end);
  EXPECT_EQ((*end)->exit_code, 4);
  EXPECT_NE(output.find("45 123\r\n"), std::string::npos) << output;
}

TEST_F(ClusterClient, AContainersProgramIsAttachedTo) {
  Json pod = shell_pod("attach", "read line; echo got $line; sleep 1000");
  pod["spec"]["containers"][0]["stdin"] = true;
  start_pod(pod);
  std::string output;
  const auto stream = ask<std::unique_ptr<PodStream>>([&](auto then) {
    return open_stream(*client_, {.space = space(), .pod = "attach", .has_input = true},
                       {.on_output =
                            [&](std::string_view bytes, bool) {
                              output += bytes;
                              look();
                            },
                        .on_end = [](const auto&) {}},
                       then);
  });
  ASSERT_TRUE(stream) << stream.error().to_string();
  (*stream)->write("hello\n");
  EXPECT_TRUE(run_until([&] { return output == "got hello\n"; })) << output;
}

TEST_F(ClusterClient, AMissingPodIsNamed) {
  const auto ended = run_in("nobody", {"true"}, "", kNewest);
  ASSERT_FALSE(ended.end);
  EXPECT_EQ(ended.end.error().code, ErrorCode::kNotFound) << ended.end.error().to_string();
  const auto port = ask<std::unique_ptr<node::PeerStream>>(
      [&](auto then) { return open_port(*client_, space(), "nobody", 1, then); });
  ASSERT_FALSE(port);
  EXPECT_EQ(port.error().code, ErrorCode::kNotFound) << port.error().to_string();
}

/// A connection to a program that returns its input. Writes bytes and reads until all have returned.
class Echoed {
 public:
  Echoed(node::PeerStream& connection, std::string sent, std::function<void()> look)
      : connection_(connection), sent_(std::move(sent)), look_(std::move(look)) {
    connection_.listen({.on_bytes =
                            [this](std::string_view bytes) {
                              received += bytes;
                              look_();
                            },
                        .on_end =
                            [this](const std::string& reason) {
                              why = reason;
                              look_();
                            },
                        .on_drain = [this] { write(); }});
    write();
  }
  bool is_complete() const { return received.size() >= sent_.size(); }
  bool is_right() const { return received == sent_; }

  std::string received;
  std::optional<std::string> why;

 private:
  void write() {
    while (written_ < sent_.size() && connection_.waiting() <= node::PeerStream::kHigh) {
      const std::string_view piece = std::string_view(sent_).substr(written_, 100'000);
      connection_.write(piece);
      written_ += piece.size();
    }
  }

  node::PeerStream& connection_;
  std::string sent_;
  std::function<void()> look_;
  size_t written_ = 0;
};

TEST_F(ClusterClient, APortIsForwardedToTheByte) {
  start_pod("ports", "exec busybox nc -ll -p 7000 -e /bin/busybox cat");
  const auto open_echo = [&] {
    return ask<std::unique_ptr<node::PeerStream>>(
        [&](auto then) { return open_port(*client_, space(), "ports", 7000, then); });
  };
  // The pod runs a moment before its program listens.
  while (true) {
    const auto first = open_echo();
    ASSERT_TRUE(first) << first.error().to_string();
    Echoed probe(**first, "x", [this] { look(); });
    ASSERT_TRUE(run_until([&] { return probe.is_complete() || probe.why; }));
    if (probe.is_complete()) break;
  }
  const auto one = open_echo();
  const auto two = open_echo();
  ASSERT_TRUE(one && two);
  const std::string sent = pattern(10 * kMegabyte);
  Echoed first(**one, sent, [this] { look(); });
  Echoed second(**two, "short", [this] { look(); });
  EXPECT_TRUE(run_until([&] { return first.is_complete() && second.is_complete(); }))
      << first.received.size() << " bytes came back; " << first.why.value_or("it is open");
  EXPECT_TRUE(first.is_right());
  EXPECT_TRUE(second.is_right());
}

TEST_F(ClusterClient, TheLastBytesOfAPortAreNotLost) {
  start_pod("last",
            "head -c 3000000 /dev/zero > /tmp/zeros; "
            "exec busybox nc -ll -p 7000 -e /bin/busybox cat /tmp/zeros");
  for (int turn = 0; turn < 5; ++turn) {
    const auto port = ask<std::unique_ptr<node::PeerStream>>(
        [&](auto then) { return open_port(*client_, space(), "last", 7000, then); });
    ASSERT_TRUE(port);
    Echoed reader(**port, "", [this] { look(); });
    ASSERT_TRUE(run_until([&] { return reader.why.has_value(); }));
    if (!reader.why->empty()) {  // it does not listen yet
      --turn;
      continue;
    }
    EXPECT_EQ(reader.received.size(), 3'000'000U);
  }
}

TEST_F(ClusterClient, APortThatRefusesIsExplained) {
  start_pod("closed", "sleep 1000");
  const auto port = ask<std::unique_ptr<node::PeerStream>>(
      [&](auto then) { return open_port(*client_, space(), "closed", 7777, then); });
  ASSERT_TRUE(port) << port.error().to_string();
  Echoed probe(**port, "x", [this] { look(); });
  ASSERT_TRUE(run_until([&] { return probe.why.has_value(); }));
  EXPECT_NE(probe.why->find("refused"), std::string::npos) << *probe.why;
}

TEST_F(ClusterClient, AProgramIsAByteStream) {
  start_pod("program", "sleep 1000");
  const auto program = ask<std::unique_ptr<node::PeerStream>>([&](auto then) {
    return open_program(*client_, space(), "program", "main", {"/bin/busybox", "cat"}, then);
  });
  ASSERT_TRUE(program) << program.error().to_string();
  Echoed echoed(**program, pattern(10 * kMegabyte), [this] { look(); });
  EXPECT_TRUE(run_until([&] { return echoed.is_complete(); }));
  EXPECT_TRUE(echoed.is_right());
}

}  // namespace
}  // namespace muster::engine::kubernetes
