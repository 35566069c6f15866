#include "engine/kubernetes/watch.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/test_loop.h"
#include "engine/kubernetes/json_lines.h"
#include "engine/kubernetes/test_fake_api_server.h"

namespace muster::engine::kubernetes {
namespace {

using base::ErrorCode;
using std::chrono::milliseconds;

TEST(JsonLines, JoinsPiecesAndSkipsEmptyLines) {
  std::vector<std::string> lines;
  const auto keep = [&](std::string_view line) {
    lines.emplace_back(line);
    return true;
  };
  JsonLines splitter(10);
  EXPECT_TRUE(splitter.put("{\"a", keep));
  EXPECT_TRUE(splitter.has_rest());
  EXPECT_TRUE(splitter.put("\"}\n\n{}\r\n{", keep));
  EXPECT_TRUE(splitter.put("}\n", keep));
  EXPECT_EQ(lines, (std::vector<std::string>{"{\"a\"}", "{}", "{}"}));
  EXPECT_FALSE(splitter.has_rest());
}

TEST(JsonLines, ALineHasALimit) {
  const auto any = [](std::string_view) { return true; };
  JsonLines splitter(10);
  EXPECT_TRUE(splitter.put("0123456789\n01234", any));
  EXPECT_FALSE(splitter.put("678901", any));
  EXPECT_TRUE(splitter.is_too_long());
}

std::string pod(const std::string& name, const std::string& uid, int version) {
  return R"({"metadata":{"namespace":"lab","name":")" + name + R"(","uid":")" + uid +
         R"(","resourceVersion":")" + std::to_string(version) + "\"}}";
}

std::string event(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}";
}

std::string end_of_list(int version) {
  return event("BOOKMARK", R"({"metadata":{"resourceVersion":")" + std::to_string(version) +
                               R"(","annotations":{"k8s.io/initial-events-end":"true"}}})");
}

const std::string kListPods = "GET /api/v1/namespaces/lab/pods";

class WatchTest : public testing::Test, protected base::TestLoop {
 protected:
  WatchTest() {
    client_ = std::make_unique<ApiClient>(
        loop(), std::make_unique<FakeAccess>(server_.socket()),
        ApiOptions{.patience = milliseconds(0), .first_pause = milliseconds(1), .page = 2});
  }

  void watch(WatchOptions options = {}) {
    options.first_pause = milliseconds(1);
    options.longest_pause = milliseconds(5);
    watch_ = std::make_unique<Watch>(
        *client_, Selection{.resource = kPods, .space = "lab", .labels = "job=x"},
        WatchHandlers{.on_object =
                          [this](const Json& object) {
                            const Json& metadata = object["metadata"];
                            note("+" + metadata["name"].get<std::string>() + "@" +
                                 metadata["resourceVersion"].get<std::string>());
                          },
                      .on_gone =
                          [this](const ObjectKey& key, const Json* last) {
                            note("-" + key.name + "/" + key.uid + (last != nullptr ? "" : "?"));
                          },
                      .on_synced = [this] { note("synced"); },
                      .on_outdated =
                          [this](const base::Error& error) {
                            last_error_ = error;
                            note("outdated");
                          },
                      .on_current = [this] { note("current"); }},
        options);
  }

  /// Waits for these notes since the last call.
  void expect(const std::vector<std::string>& notes) {
    EXPECT_TRUE(run_until([&] { return notes_.size() >= notes.size(); }));
    EXPECT_EQ(notes_, notes);
    notes_.clear();
  }

  void note(std::string text) {
    notes_.push_back(std::move(text));
    look();
  }

  /// Answers to lists and watches, which have one path.
  using Answer = FakeApiServer::Answer;
  static Answer of(http::Response answer) {
    return [answer = std::move(answer)](const http::Request&) { return answer; };
  }
  static Answer list(const std::string& items, int version, const std::string& next = "") {
    return of({.body = R"({"metadata":{"resourceVersion":")" + std::to_string(version) +
                       R"(","continue":")" + next + R"("},"items":[)" + items + "]}"});
  }
  /// An API server that has no lists over the watch.
  static Answer cannot_stream() {
    return of(FakeApiServer::refusal(422, "Invalid", "sendInitialEvents is forbidden"));
  }

  http::Query query(size_t number) const { return server_.asked().at(number).query; }

  FakeApiServer server_;
  std::unique_ptr<ApiClient> client_;
  std::unique_ptr<Watch> watch_;
  std::vector<std::string> notes_;
  base::Error last_error_;
};

TEST_F(WatchTest, TheListComesOverTheWatch) {
  const auto stream = server_.watch();
  server_.on(kListPods, of(stream->answer()));
  watch();
  stream->push(event("ADDED", pod("a", "u1", 1)));
  stream->push(event("ADDED", pod("b", "u2", 2)));
  stream->push(end_of_list(5));
  expect({"+a@1", "+b@2", "synced"});
  EXPECT_EQ(watch_->size(), 2U);
  EXPECT_TRUE(watch_->is_synced());
  EXPECT_EQ(query(0).at("sendInitialEvents"), "true");
  EXPECT_EQ(query(0).at("resourceVersionMatch"), "NotOlderThan");
  EXPECT_EQ(query(0).at("labelSelector"), "job=x");

  stream->push(event("MODIFIED", pod("a", "u1", 6)));
  stream->push(event("DELETED", pod("b", "u2", 7)));
  expect({"+a@6", "-b/u2"});
}

TEST_F(WatchTest, AnOlderServerListsInPages) {
  const auto stream = server_.watch();
  server_.on(kListPods, {cannot_stream(), list(pod("a", "u1", 1) + "," + pod("b", "u2", 2), 9, "c"),
                         list(pod("c", "u3", 3), 9), of(stream->answer())});
  watch();
  expect({"+a@1", "+b@2", "+c@3", "synced"});
  stream->push(event("ADDED", pod("d", "u4", 10)));
  expect({"+d@10"});
  EXPECT_EQ(query(1).at("limit"), "2");
  EXPECT_EQ(query(3).at("resourceVersion"), "9");
  EXPECT_FALSE(query(3).contains("sendInitialEvents"));
}

TEST_F(WatchTest, AServerThatIgnoresTheRequestForAListIsAskedInPages) {
  const auto endless = server_.watch();
  const auto stream = server_.watch();
  server_.on(kListPods, {of(endless->answer()), list(pod("a", "u1", 1), 9), of(stream->answer())});
  watch({.list_silence = milliseconds(100)});
  endless->push(event("ADDED", pod("a", "u1", 1)));
  expect({"+a@1", "synced"});
}

TEST_F(WatchTest, AStorageThatCannotStreamTheListIsAskedInPages) {
  const auto refusing = server_.watch();
  const auto stream = server_.watch();
  server_.on(kListPods, {of(refusing->answer()), list(pod("a", "u1", 1), 9), of(stream->answer())});
  watch();
  refusing->push(event("ERROR", R"({"kind":"Status","code":500,"message":"etcd is too old"})"));
  expect({"outdated", "+a@1", "current", "synced"});
}

TEST_F(WatchTest, ABrokenWatchContinuesAtItsPosition) {
  const auto first = server_.watch();
  const auto second = server_.watch();
  server_.on(kListPods, {of(first->cuttable()), of(second->answer())});
  watch();
  first->push(end_of_list(5));
  expect({"synced"});
  first->push(event("ADDED", pod("a", "u1", 6)));
  first->push(event("BOOKMARK", R"({"metadata":{"resourceVersion":"8"}})"));
  first->push_bytes(R"({"type":"ADDED","obj)");
  first->cut();
  expect({"+a@6"});
  second->push(event("ADDED", pod("b", "u2", 9)));
  expect({"+b@9"});
  EXPECT_EQ(query(1).at("resourceVersion"), "8");
}

TEST_F(WatchTest, AWatchThatEndsInOrderContinuesAtItsPosition) {
  const auto first = server_.watch();
  const auto second = server_.watch();
  server_.on(kListPods, {of(first->answer()), of(second->answer())});
  watch();
  first->push(end_of_list(5));
  first->end();
  expect({"synced"});
  second->push(event("ADDED", pod("b", "u2", 9)));
  expect({"+b@9"});
  EXPECT_EQ(query(1).at("resourceVersion"), "5");
}

TEST_F(WatchTest, AnOutdatedPositionIsFollowedByAListWhoseDifferencesAreReported) {
  const auto first = server_.watch();
  const auto second = server_.watch();
  server_.on(kListPods, {of(first->answer()), of(second->answer())});
  watch();
  first->push(event("ADDED", pod("same", "u1", 1)));
  first->push(event("ADDED", pod("changed", "u2", 2)));
  first->push(event("ADDED", pod("gone", "u3", 3)));
  first->push(event("ADDED", pod("replaced", "u4", 4)));
  first->push(end_of_list(5));
  expect({"+same@1", "+changed@2", "+gone@3", "+replaced@4", "synced"});

  first->push(event("ERROR", R"({"kind":"Status","code":410,"reason":"Expired"})"));
  second->push(event("ADDED", pod("same", "u1", 1)));
  second->push(event("ADDED", pod("changed", "u2", 12)));
  second->push(event("ADDED", pod("replaced", "u5", 13)));
  second->push(end_of_list(20));
  expect({"+changed@12", "-replaced/u4?", "+replaced@13", "-gone/u3?", "synced"});
  EXPECT_EQ(watch_->size(), 3U);
  EXPECT_FALSE(query(1).contains("resourceVersion"));
}

TEST_F(WatchTest, ARefusalIsReportedUntilItEnds) {
  const auto stream = server_.watch();
  const Answer forbidden = of(FakeApiServer::refusal(403, "Forbidden", "no watch for you"));
  server_.on(kListPods, {forbidden, forbidden, of(stream->answer())});
  watch();
  stream->push(end_of_list(5));
  expect({"outdated", "current", "synced"});
  EXPECT_EQ(last_error_.code, ErrorCode::kRefused);
  EXPECT_EQ(last_error_.what,
            "cannot watch pods with job=x in namespace 'lab': the API server at https://fake:6443 "
            "answered: no watch for you");
}

TEST_F(WatchTest, AnIncompleteObjectIsAnErrorAndTheWatchContinues) {
  const auto first = server_.watch();
  const auto second = server_.watch();
  server_.on(kListPods, {of(first->answer()), of(second->answer())});
  watch();
  first->push(end_of_list(5));
  first->push(R"({"type":"ADDED","object":{"metadata")");
  expect({"synced", "outdated"});
  EXPECT_EQ(last_error_.code, ErrorCode::kInternal);
  second->push(event("ADDED", pod("a", "u1", 6)));
  expect({"+a@6", "current"});
}

TEST_F(WatchTest, AnObjectThatIsTooLargeIsAnError) {
  const auto first = server_.watch();
  const auto second = server_.watch();
  server_.on(kListPods, {of(first->answer()), of(second->answer())});
  watch({.most_bytes = 1000});
  first->push(end_of_list(5));
  first->push_bytes(std::string(2000, 'x'));
  expect({"synced", "outdated"});
  EXPECT_EQ(last_error_.code, ErrorCode::kExhausted);
}

TEST_F(WatchTest, ASilentWatchIsStartedAgain) {
  const auto first = server_.watch();
  const auto second = server_.watch();
  server_.on(kListPods, {of(first->answer()), of(second->answer())});
  watch({.silence = milliseconds(1000)});
  first->push(end_of_list(5));
  expect({"synced"});
  second->push(event("ADDED", pod("a", "u1", 6)));
  expect({"+a@6"});
  EXPECT_EQ(query(1).at("resourceVersion"), "5");
}

TEST_F(WatchTest, AHandlerMayDropTheWatch) {
  const auto stream = server_.watch();
  server_.on(kListPods, of(stream->answer()));
  bool done = false;
  watch_ = std::make_unique<Watch>(
      *client_, Selection{.resource = kPods, .space = "lab"},
      WatchHandlers{.on_object =
                        [&](const Json&) {
                          EXPECT_FALSE(done);
                          watch_.reset();
                          done = true;
                          look();
                        },
                    .on_gone = [](const ObjectKey&, const Json*) { ADD_FAILURE(); },
                    .on_synced = [] { ADD_FAILURE(); }});
  stream->push(event("ADDED", pod("a", "u1", 1)));
  stream->push(event("ADDED", pod("b", "u2", 2)));
  EXPECT_TRUE(run_until([&] { return done; }));
}

TEST_F(WatchTest, WatchesAreCountedApartFromLists) {
  const auto stream = server_.watch();
  server_.on(kListPods, {cannot_stream(), list("", 1), of(stream->answer())});
  watch();
  expect({"synced"});
  EXPECT_EQ(client_->counts().at({"list", "pods"}), 1U);
  EXPECT_EQ(client_->counts().at({"watch", "pods"}), 2U);
  EXPECT_EQ(client_->in_flight(), 0U);
}

}  // namespace
}  // namespace muster::engine::kubernetes
