// Every route as the wrong user. The table below has at least one row for each route that the
// server has, with what each kind of caller is answered; who has no role in the project that is
// asked for must not find a byte of it in any answer, nor a difference to one about what does not
// exist.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "api/account_wire.h"
#include "api/notification_wire.h"
#include "api/project_wire.h"
#include "api/tree_wire.h"
#include "api/wire.h"
#include "base/files.h"
#include "base/test_folder.h"
#include "base/text.h"
#include "team_server.h"
#include "workspace/manifest.h"

namespace muster::server {
namespace {

using access::Role;
using access::TokenKind;

job::JobSpec velvet_spec(const std::string& name, int gpus) {
  job::JobSpec spec = single_job(name, "velvet", gpus);
  spec.command = {"azurite"};
  spec.environment = {{"opal", "sardonyx"}};
  spec.folder = "/porphyry";
  return spec;
}

/// Velvet runs one job, has one that waits and one that has ended; green has lost room to it.
class Team : public TeamServer {
 public:
  Team() {
    add_project("umbrella", "", 4, 4);
    add_project("velvet", "umbrella", 3);
    add_project("green", "umbrella", 1);
    add_project("velvet-spare", "", 0);
    add_users();
    add_jobs();
    EXPECT_TRUE(accounts().set_secret("velvet", "MOONSTONE", "chrysoprase", {.user = "jasper"}));
    add_subscription();
    EXPECT_TRUE(base::write_new_file(artifacts_ / "tourmaline", "azurite"));
    engine().artifacts = artifacts_.path();
    issue_tokens();
  }

  const std::string& token_of(const std::string& caller) const { return tokens_.at(caller); }
  const std::string& amber_token_id() const { return amber_token_id_; }
  std::string subscription() const { return notifications().subscriptions("velvet").front().id; }

  /// Velvet's tree: one without files.
  static std::string manifest() { return workspace::encode({}); }
  static std::string tree() { return workspace::tree_id(manifest()); }

  /// As a TeamServer; but who asks for the tree finds it kept.
  http::Response ask(const Ask& ask) {
    if (ask.path.find("/trees/") != std::string::npos) keep_tree();
    return TeamServer::ask(ask);
  }

 private:
  void keep_tree() {
    EXPECT_TRUE(trees().put_chunk("velvet", manifest()));
    EXPECT_TRUE(trees().keep("velvet", tree(), {workspace::chunk_id(manifest())}));
  }

  void add_users() {
    add_user("sam", {{"green", Role::kMember}});
    add_user("beryl", {{"velvet", Role::kViewer}});
    add_user("hyacinth", {{"velvet", Role::kMember}, {"green", Role::kViewer}});
    add_user("jasper", {{"velvet", Role::kAdmin}, {"green", Role::kViewer}});
    add_user("amber", {{"velvet", Role::kMember}});
    add_user("disabled-amber", {{"velvet", Role::kAdmin}}, Role::kAdmin);
    add_user("vera", {}, Role::kViewer);
    add_user("rudi", {}, Role::kAdmin);
  }

  void add_subscription() {
    notifications().add({.project = "velvet",
                         .url = "https://azurite.example.com/sardonyx",
                         .on = {job::Happening::kFailed}},
                        {}, [](const auto& added) { EXPECT_TRUE(added); });
  }

  void add_jobs() {
    submit(single_job("green-big", "green", 3), "sam");
    job::JobSpec running = velvet_spec("quicksilver", 3);
    running.kind = job::Kind::kMpi;
    running.workers = 1;
    submit(running, "hyacinth");
    submit(velvet_spec("obsidian", 2), "hyacinth");
    submit(single_job("green-small", "green", 1), "sam");
    submit(velvet_spec("garnet", 0), "hyacinth");
    end("garnet");
  }

  void issue_tokens() {
    for (const auto& [caller, user] :
         std::map<std::string, std::string>{{"stranger", "sam"},
                                            {"viewer", "beryl"},
                                            {"member", "hyacinth"},
                                            {"admin", "jasper"},
                                            {"server viewer", "vera"},
                                            {"server admin", "rudi"}}) {
      tokens_[caller] = token({.user = user, .kind = TokenKind::kSession});
    }
    tokens_["nobody"] = "";
    tokens_["no token"] = "chrysoprase";
    tokens_["forged"] = tokens_["server admin"];
    tokens_["forged"].back() = tokens_["forged"].back() == 'a' ? 'b' : 'a';
    tokens_["invited"] = token({.user = "rudi", .kind = TokenKind::kInvitation});
    tokens_["reading"] = token({.user = "jasper", .ceiling = Role::kViewer});
    tokens_["elsewhere"] = token({.user = "jasper", .projects = {"green"}});
    amber_token_id_ = id_of(token({.user = "amber"}));
    tokens_["disabled"] = token({.user = "disabled-amber"});
    access::User disabled = *accounts().user("disabled-amber");
    disabled.disabled = true;
    EXPECT_TRUE(accounts().set_user(disabled, {}));
    tokens_["revoked"] = token({.user = "rudi"});
    EXPECT_TRUE(accounts().revoke(id_of(tokens_["revoked"]), {}));
    tokens_["expired"] = token({.user = "rudi", .lifetime = std::chrono::seconds(1)});
    clock().advance(std::chrono::seconds(2));
  }

  static std::string id_of(const std::string& text) { return access::parse_token(text)->id; }

  base::TestFolder artifacts_;  ///< of velvet's jobs
  std::map<std::string, std::string> tokens_;
  std::string amber_token_id_;
};

// --- the table

/// What each kind of caller is answered. Whoever shows no token that is good is answered 401, and
/// an invitation 403, but on routes that are for them; a token that is good for green alone is
/// answered what a member of green is.
struct Row {
  std::string route;  ///< as it was added
  TeamServer::Ask ask;
  int stranger = 0;
  int viewer = 0;
  int member = 0;
  int admin = 0;
  int server_viewer = 0;
  int server_admin = 0;
  int reading = 0;  ///< of an admin of the project, but only to read; 0: as a viewer
  int nobody = 401;
  int invited = 403;
};

TeamServer::Ask get(std::string path, std::map<std::string, std::string> query = {}) {
  return {.path = std::move(path), .query = std::move(query)};
}
TeamServer::Ask send(std::string method, std::string path, std::string body = {}) {
  return {.method = std::move(method), .path = std::move(path), .body = std::move(body)};
}

std::string new_job() {
  return api::spec_to_json(velvet_spec("obsidian-two", 1));
}
std::string new_project() {
  return api::project_change_to_json("velvet-new", {});
}
std::string more_quota() {
  api::ProjectChange change;
  change.quota.weight = 3;
  return api::project_change_to_json("", change);
}
std::string new_user() {
  return api::user_to_json({.name = "amber-two", .projects = {{"velvet", Role::kMember}}});
}

std::vector<Row> job_rows() {
  const std::string job = "/v1/jobs/quicksilver";
  return {
      {"POST /v1/jobs", send("POST", "/v1/jobs", new_job()), 404, 403, 201, 201, 403, 201},
      {"POST /v1/jobs",
       {.method = "POST", .path = "/v1/jobs", .query = {{"dry_run", "true"}}, .body = new_job()},
       404,
       403,
       200,
       200,
       403,
       200},
      {"GET /v1/jobs", get("/v1/jobs"), 200, 200, 200, 200, 200, 200},
      {"GET /v1/jobs", get("/v1/jobs", {{"project", "velvet"}}), 404, 200, 200, 200, 200, 200},
      {"GET /v1/jobs", get("/v1/jobs", {{"owner", "hyacinth"}}), 200, 200, 200, 200, 200, 200},
      {"GET /v1/queue", get("/v1/queue"), 200, 200, 200, 200, 200, 200},
      {"GET /v1/jobs/{name}", get(job), 404, 200, 200, 200, 200, 200},
      {"GET /v1/jobs/{name}", get(job, {{"project", "velvet"}}), 404, 200, 200, 200, 200, 200},
      {"DELETE /v1/jobs/{name}", send("DELETE", "/v1/jobs/garnet"), 404, 403, 204, 204, 403, 204},
      {"PATCH /v1/jobs/{name}", send("PATCH", job, R"({"labels": {"colour": "red"}})"), 404, 403,
       200, 200, 403, 200},
      {"POST /v1/jobs/{name}/stop", send("POST", job + "/stop"), 404, 403, 200, 200, 403, 200},
      {"POST /v1/jobs/{name}/suspend", send("POST", job + "/suspend"), 404, 403, 200, 200, 403,
       200},
      {"POST /v1/jobs/{name}/resume", send("POST", job + "/resume"), 404, 403, 200, 200, 403, 200},
      {"GET /v1/jobs/{name}/explain", get("/v1/jobs/obsidian/explain"), 404, 200, 200, 200, 200,
       200},
      {"GET /v1/jobs/{name}/metrics", get(job + "/metrics"), 404, 200, 200, 200, 200, 200},
      {"GET /v1/jobs/{name}/metrics", get(job + "/metrics", {{"task", "none"}}), 404, 404, 404, 404,
       404, 404},
      {"GET /v1/jobs/{name}/logs", get(job + "/logs"), 404, 200, 200, 200, 200, 200},
      {"GET /v1/jobs/{name}/logs", get(job + "/logs", {{"task", "launcher"}, {"follow", "true"}}),
       404, 200, 200, 200, 200, 200},
      {"GET /v1/watch/jobs", get("/v1/watch/jobs"), 200, 200, 200, 200, 200, 200},
      {"GET /v1/watch/jobs", get("/v1/watch/jobs", {{"project", "velvet"}}), 404, 200, 200, 200,
       200, 200},
      {"GET /v1/watch/events", get("/v1/watch/events"), 200, 200, 200, 200, 200, 200},
      {"GET /v1/watch/events", get("/v1/watch/events", {{"project", "velvet"}}), 404, 200, 200, 200,
       200, 200},
  };
}

std::vector<Row> exec_rows() {
  TeamServer::Ask exec =
      get("/v1/jobs/quicksilver/exec", {{"task", "launcher"}, {"command", R"(["azurite"])"}});
  TeamServer::Ask upgrade = exec;
  upgrade.headers = {{"connection", "Upgrade"},
                     {"upgrade", "websocket"},
                     {"sec-websocket-version", "13"},
                     {"sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="}};
  const std::string route = "GET /v1/jobs/{name}/exec";
  return {{route, exec, 404, 403, 400, 400, 403, 400},
          {route, upgrade, 404, 403, 101, 101, 403, 101}};
}

std::vector<Row> attach_rows() {
  std::vector<Row> rows = exec_rows();
  for (Row& row : rows) {
    row.route = "GET /v1/jobs/{name}/attach";
    row.ask.path = "/v1/jobs/quicksilver/attach";
    row.ask.query.erase("command");
  }
  return rows;
}

std::vector<Row> copy_rows() {
  std::vector<Row> rows = exec_rows();
  for (Row& row : rows) {
    row.route = "GET /v1/jobs/{name}/copy";
    row.ask.path = "/v1/jobs/quicksilver/copy";
    row.ask.query = {{"task", "launcher"}, {"path", "/etc/azurite"}};
  }
  return rows;
}

std::vector<Row> forward_rows() {
  std::vector<Row> rows = exec_rows();
  for (Row& row : rows) {
    row.route = "GET /v1/jobs/{name}/forward";
    row.ask.path = "/v1/jobs/quicksilver/forward";
    row.ask.query = {{"task", "launcher"}, {"port", "8888"}};
  }
  return rows;
}

std::vector<Row> artifact_rows() {
  const std::string job = "/v1/jobs/quicksilver";
  const std::string list = "GET /v1/jobs/{name}/artifacts";
  const std::string one = "GET /v1/jobs/{name}/artifact";
  return {
      {list, get(job + "/artifacts"), 404, 200, 200, 200, 200, 200},
      {list, get(job + "/artifacts", {{"checksums", "true"}}), 404, 200, 200, 200, 200, 200},
      {one, get(job + "/artifact", {{"path", "tourmaline"}}), 404, 200, 200, 200, 200, 200},
      {one, get(job + "/artifact", {{"path", "azurite"}}), 404, 404, 404, 404, 404, 404},
      {one, get(job + "/artifact", {{"path", "../azurite"}}), 404, 400, 400, 400, 400, 400},
  };
}

std::vector<Row> project_rows() {
  const std::string velvet = "/v1/projects/velvet";
  const std::string beryl = velvet + "/members/beryl";
  const std::string secret = velvet + "/secrets/MOONSTONE";
  return {
      {"GET /v1/projects", get("/v1/projects"), 200, 200, 200, 200, 200, 200},
      {"POST /v1/projects", send("POST", "/v1/projects", new_project()), 403, 403, 403, 403, 403,
       201},
      {"GET /v1/projects/{name}", get(velvet), 404, 200, 200, 200, 200, 200},
      {"PATCH /v1/projects/{name}", send("PATCH", velvet, more_quota()), 403, 403, 403, 403, 403,
       200},
      {"DELETE /v1/projects/{name}", send("DELETE", "/v1/projects/velvet-spare"), 403, 403, 403,
       403, 403, 204},
      {"GET /v1/projects/{name}/members", get(velvet + "/members"), 404, 200, 200, 200, 200, 200},
      {"PUT /v1/projects/{name}/members/{user}",
       send("PUT", beryl, api::role_to_json(Role::kMember)), 404, 403, 403, 204, 403, 204},
      {"DELETE /v1/projects/{name}/members/{user}", send("DELETE", beryl), 404, 403, 403, 204, 403,
       204},
      {"GET /v1/projects/{name}/secrets", get(velvet + "/secrets"), 404, 403, 200, 200, 403, 200},
      {"PUT /v1/projects/{name}/secrets/{secret}",
       send("PUT", secret, api::secret_value_to_json("pearl")), 404, 403, 403, 200, 403, 200},
      {"DELETE /v1/projects/{name}/secrets/{secret}", send("DELETE", secret), 404, 403, 403, 204,
       403, 204},
  };
}

std::vector<Row> notification_rows(const Team& team) {
  const std::string all = "/v1/projects/velvet/notifications";
  const std::string one = all + "/" + team.subscription();
  const std::string route = "/v1/projects/{name}/notifications";
  const std::string dead = "/v1/projects/velvet/dead-letters";
  const std::string request = api::subscription_request_to_json(
      {.url = "https://azurite.example.com/azurite", .on = {job::Happening::kFailed}});
  return {
      {"GET " + route, get(all), 404, 200, 200, 200, 200, 200},
      {"POST " + route, send("POST", all, request), 404, 403, 403, 201, 403, 201},
      {"DELETE " + route + "/{id}", send("DELETE", one), 404, 403, 403, 204, 403, 204},
      {"DELETE " + route + "/{id}", send("DELETE", all + "/azurite"), 404, 403, 403, 404, 403, 404},
      {"POST " + route + "/{id}/rotate", send("POST", one + "/rotate"), 404, 403, 403, 200, 403,
       200},
      {"POST " + route + "/{id}/test", send("POST", one + "/test"), 404, 403, 403, 200, 403, 200},
      {"GET /v1/projects/{name}/dead-letters", get(dead), 404, 200, 200, 200, 200, 200},
      {"POST /v1/projects/{name}/dead-letters/retry",
       send("POST", dead + "/retry", api::retry_ids_to_json({})), 404, 403, 403, 200, 403, 200},
  };
}

std::vector<Row> tree_rows() {
  const std::string velvet = "/v1/projects/velvet";
  const std::string tree = velvet + "/trees/" + Team::tree();
  const std::string ids = api::chunk_ids_to_json({workspace::chunk_id(Team::manifest())});
  TeamServer::Ask chunks = send("PUT", velvet + "/chunks");
  chunks.headers = {{"content-type", std::string(api::kChunksType)}};
  api::append_chunk(chunks.body, "azurite");
  return {
      {"GET /v1/projects/{name}/trees/{id}", get(tree), 404, 403, 200, 200, 403, 200},
      {"PUT /v1/projects/{name}/trees/{id}", send("PUT", tree, ids), 404, 403, 200, 200, 403, 200},
      {"POST /v1/projects/{name}/chunks/missing", send("POST", velvet + "/chunks/missing", ids),
       404, 403, 200, 200, 403, 200},
      {"PUT /v1/projects/{name}/chunks", chunks, 404, 403, 204, 204, 403, 204},
  };
}

std::vector<Row> account_rows(const Team& team) {
  const std::string of_amber = api::token_request_to_json({.user = "amber"});
  const std::string user = "/v1/users/amber";
  return {
      {.route = "POST /v1/login",
       .ask = send("POST", "/v1/login", "{}"),
       .stranger = 201,
       .viewer = 201,
       .member = 201,
       .admin = 201,
       .server_viewer = 201,
       .server_admin = 201,
       .invited = 201},
      {"POST /v1/logout", send("POST", "/v1/logout"), 204, 204, 204, 204, 204, 204},
      {"GET /v1/whoami", get("/v1/whoami"), 200, 200, 200, 200, 200, 200},
      {"GET /v1/users", get("/v1/users"), 403, 403, 403, 403, 200, 200},
      {"POST /v1/users", send("POST", "/v1/users", new_user()), 403, 403, 403, 403, 403, 201},
      {"GET /v1/users/{name}", get(user), 404, 404, 404, 404, 200, 200},
      {"PATCH /v1/users/{name}", send("PATCH", user, R"({"server_role": "admin"})"), 403, 403, 403,
       403, 403, 200},
      {"DELETE /v1/users/{name}", send("DELETE", user), 403, 403, 403, 403, 403, 204},
      {"POST /v1/users/{name}/invitation", send("POST", user + "/invitation"), 403, 403, 403, 403,
       403, 201},
      {"GET /v1/tokens", get("/v1/tokens"), 200, 200, 200, 200, 200, 200},
      {"GET /v1/tokens", get("/v1/tokens", {{"user", "amber"}}), 403, 403, 403, 403, 403, 200},
      {"POST /v1/tokens", send("POST", "/v1/tokens", "{}"), 201, 201, 201, 201, 201, 201, 403},
      {"POST /v1/tokens",
       send("POST", "/v1/tokens", api::token_request_to_json({.projects = {"velvet"}})), 404, 201,
       201, 201, 201, 201, 403},
      {"POST /v1/tokens", send("POST", "/v1/tokens", of_amber), 403, 403, 403, 403, 403, 201},
      {"DELETE /v1/tokens/{id}", send("DELETE", "/v1/tokens/" + team.amber_token_id()), 404, 404,
       404, 404, 404, 204},
      {"GET /v1/audit", get("/v1/audit"), 403, 403, 403, 403, 200, 200},
      {"GET /v1/audit", get("/v1/audit", {{"project", "velvet"}}), 404, 403, 403, 200, 200, 200},
      {"GET /v1/audit", get("/v1/audit", {{"project", "green"}}), 403, 404, 403, 403, 200, 200,
       403},
  };
}

std::vector<Row> server_rows() {
  const std::string node = "/v1/nodes/gpu-1";
  const auto for_anybody = [](const std::string& path) {
    return Row{"GET " + path, get(path), 200, 200, 200, 200, 200, 200, 200, 200, 200};
  };
  return {
      for_anybody("/healthz"),
      for_anybody("/readyz"),
      for_anybody("/openapi.json"),
      {"GET /metrics", get("/metrics"), 403, 403, 403, 403, 200, 200},
      {"GET /v1/info", get("/v1/info"), 200, 200, 200, 200, 200, 200},
      {"GET /v1/machine-types", get("/v1/machine-types"), 200, 200, 200, 200, 200, 200},
      {"GET /v1/nodes", get("/v1/nodes"), 200, 200, 200, 200, 200, 200},
      {"GET /v1/nodes/{name}", get(node), 200, 200, 200, 200, 200, 200},
      {"POST /v1/nodes/{name}/cordon", send("POST", node + "/cordon"), 403, 403, 403, 403, 403,
       200},
      {"POST /v1/nodes/{name}/uncordon", send("POST", node + "/uncordon"), 403, 403, 403, 403, 403,
       200},
      {"POST /v1/nodes/{name}/drain", send("POST", node + "/drain"), 403, 403, 403, 403, 403, 200},
      {"POST /v1/shutdown", send("POST", "/v1/shutdown"), 403, 403, 403, 403, 403, 403},
  };
}

std::vector<Row> rows() {
  const Team team;
  std::vector<Row> all = job_rows();
  for (const auto& more :
       {artifact_rows(), attach_rows(), copy_rows(), exec_rows(), forward_rows(), project_rows(),
        notification_rows(team), tree_rows(), account_rows(team), server_rows()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

int expected(const Row& row, const std::string& caller) {
  if (caller == "stranger" || caller == "elsewhere") return row.stranger;
  if (caller == "viewer") return row.viewer;
  if (caller == "reading") return row.reading != 0 ? row.reading : row.viewer;
  if (caller == "member") return row.member;
  if (caller == "admin") return row.admin;
  if (caller == "server viewer") return row.server_viewer;
  if (caller == "server admin") return row.server_admin;
  if (caller == "invited") return row.invited;
  return row.nobody;
}

const std::vector<std::string> kNotLetIn{"nobody",  "no token", "forged",
                                         "expired", "revoked",  "disabled"};
const std::vector<std::string> kStrangers{"stranger", "elsewhere"};
const std::vector<std::string> kLetIn{"invited", "viewer",        "reading",     "member",
                                      "admin",   "server viewer", "server admin"};

std::string title(const Row& row, const std::string& caller) {
  std::string text = row.route + " (" + row.ask.path;
  for (const auto& [name, value] : row.ask.query) text += " " + name + "=" + value;
  return text + ") as " + caller;
}

http::Response ask_as(Team& team, const Row& row, const std::string& caller) {
  TeamServer::Ask ask = row.ask;
  ask.token = team.token_of(caller);
  return team.ask(ask);
}

// --- what must not be in an answer

std::string all_of(const http::Response& response) {
  std::string text = response.body + "\n" + response.content_type;
  for (const auto& [name, value] : response.headers) text += "\n" + name + ": " + value;
  return text;
}

std::string all_of(const TeamServer::Ask& ask) {
  std::string text = ask.path + "\n" + ask.body;
  for (const auto& [name, value] : ask.query) text += "\n" + value;
  return text;
}

std::string lower(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(letter));
  return text;
}

/// A word of velvet's in the answer that was not in the question.
std::string word_given_away(const http::Response& response, const TeamServer::Ask& ask,
                            const std::string& own_name) {
  const std::string said = lower(all_of(response));
  const std::string asked = lower(all_of(ask)) + own_name;
  for (const std::string& word : kVelvetWords) {
    if (said.find(lower(word)) != std::string::npos && asked.find(lower(word)) == std::string::npos)
      return word;
  }
  return "";
}

/// A token that is good elsewhere may name its own user.
std::string own_name_of(const std::string& caller) {
  return caller == "elsewhere" ? "jasper" : "";
}

/// Velvet's names in the question become such as are nobody's.
std::string of_ghosts(std::string text) {
  for (const auto& [word, ghost] :
       std::vector<std::pair<std::string, std::string>>{{"velvet", "xxxxxx"},
                                                        {"quicksilver", "xxxxxxxxxxx"},
                                                        {"obsidian", "xxxxxxxx"},
                                                        {"garnet", "xxxxxx"},
                                                        {"hyacinth", "xxxxxxxx"},
                                                        {"amber", "xxxxx"},
                                                        {"beryl", "xxxxx"},
                                                        {"MOONSTONE", "XXXXXXXXX"}}) {
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word)) {
      text.replace(at, word.size(), ghost);
    }
  }
  return text;
}

TeamServer::Ask of_ghosts(TeamServer::Ask ask) {
  ask.path = of_ghosts(ask.path);
  ask.body = of_ghosts(ask.body);
  for (auto& [name, value] : ask.query) value = of_ghosts(value);
  return ask;
}

}  // namespace

// --- the tests

TEST(WrongUser, TheTableHasARowForEachRouteAndNoneForOthers) {
  const Team team;
  std::set<std::string> routes;
  for (const auto& route : team.app().router().routes()) {
    routes.insert(route.method + " " + route.path);
  }
  std::set<std::string> in_table;
  for (const Row& row : rows()) in_table.insert(row.route);

  EXPECT_EQ(in_table, routes);
}

TEST(WrongUser, GreenHasLostRoomToVelvetAndWouldBeToldSo) {
  Team team;
  const auto words = [&](const std::string& name) {
    const auto explanation = team.controller().explain(name);
    std::string text = explanation->reason;
    for (const std::string& detail : explanation->details) text += "\n" + detail;
    for (const job::Event& event : explanation->events) text += "\n" + event.text;
    return text;
  };

  EXPECT_NE(words("green-big").find("quicksilver"), std::string::npos) << words("green-big");
  EXPECT_EQ((*team.controller().find("quicksilver"))->phase, job::Phase::kRunning);
  EXPECT_EQ((*team.controller().find("green-small"))->phase, job::Phase::kRunning);
}

TEST(WrongUser, NobodyIsLetInWithoutATokenThatIsGood) {
  for (const Row& row : rows()) {
    Team team;
    for (const std::string& caller : kNotLetIn) {
      const http::Response answer = ask_as(team, row, caller);
      EXPECT_EQ(answer.status, expected(row, caller)) << title(row, caller) << "\n" << answer.body;
      EXPECT_EQ(word_given_away(answer, row.ask, caller == "disabled" ? "disabled-amber" : ""), "")
          << title(row, caller) << "\n"
          << answer.body;
      if (answer.status == 401) {
        EXPECT_TRUE(answer.headers.at("www-authenticate").starts_with("Bearer"));
      }
    }
  }
}

TEST(WrongUser, AStrangerSeesNothingOfAProject) {
  for (const Row& row : rows()) {
    for (const std::string& caller : kStrangers) {
      Team team;
      const http::Response answer = ask_as(team, row, caller);
      EXPECT_EQ(answer.status, expected(row, caller)) << title(row, caller) << "\n" << answer.body;
      EXPECT_EQ(word_given_away(answer, row.ask, own_name_of(caller)), "")
          << title(row, caller) << "\n"
          << all_of(answer);
    }
  }
}

TEST(WrongUser, WhatAStrangerMayNotSeeIsAnsweredAsWhatDoesNotExist) {
  for (const Row& row : rows()) {
    if (row.stranger != 404) continue;
    for (const std::string& caller : kStrangers) {
      Team team;
      const http::Response answer = ask_as(team, row, caller);
      Row ghost = row;
      ghost.ask = of_ghosts(row.ask);
      const http::Response nothing = ask_as(team, ghost, caller);

      EXPECT_EQ(nothing.status, 404) << title(ghost, caller);
      EXPECT_EQ(of_ghosts(answer.body), nothing.body) << title(row, caller);
      EXPECT_EQ(answer.headers, nothing.headers) << title(row, caller);
    }
  }
}

TEST(WrongUser, EachRoleMayDoWhatItIsGoodForAndNoMore) {
  for (const Row& row : rows()) {
    for (const std::string& caller : kLetIn) {
      Team team;
      const http::Response answer = ask_as(team, row, caller);
      EXPECT_EQ(answer.status, expected(row, caller)) << title(row, caller) << "\n" << answer.body;
    }
  }
}

TEST(WrongUser, WhoOnlyReadsChangesNothing) {
  const std::set<std::string> own{"POST /v1/login", "POST /v1/logout", "POST /v1/tokens"};
  for (const Row& row : rows()) {
    const bool reads =
        row.ask.method == "GET" && !row.route.ends_with("/exec") && !row.route.ends_with("/attach");
    if (reads || own.contains(row.route)) continue;
    for (const std::string caller :
         {"stranger", "elsewhere", "viewer", "reading", "server viewer"}) {
      Team team;
      const size_t before = team.accounts().audit({.limit = 1000})->size();
      ask_as(team, row, caller);
      EXPECT_EQ(team.accounts().audit({.limit = 1000})->size(), before) << title(row, caller);
    }
  }
}

// --- what becomes known while a stream is open

TEST(WrongUser, AWatcherHearsNothingOfWhatHappensInAnotherProject) {
  for (const char* const path : {"/v1/watch/jobs", "/v1/watch/events"}) {
    Team team;
    TeamServer::Ask ask = get(path);
    ask.token = team.token_of("stranger");
    const http::Response answer = team.ask(ask);
    ASSERT_EQ(answer.status, 200) << path << answer.body;

    team.submit(velvet_spec("obsidian-two", 1), "hyacinth");
    ASSERT_TRUE(team.controller().stop("obsidian", true));
    team.end("quicksilver");
    team.settle();

    const http::Response heard{.body = answer.body + team.read(answer.stream)};
    EXPECT_EQ(word_given_away(heard, ask, ""), "") << path << "\n" << heard.body;
  }
}

// --- a token makes none that can do more than itself

class Tokens : public testing::Test {
 protected:
  http::Response request(const std::string& token, const api::TokenRequest& request,
                         const std::string& path = "/v1/tokens") {
    return team_.ask({.method = "POST",
                      .path = path,
                      .body = api::token_request_to_json(request),
                      .token = token});
  }

  access::Token made(const http::Response& answer) {
    const auto token = api::new_token_from_json(answer.body);
    EXPECT_TRUE(token) << answer.body;
    return token ? token->token : access::Token{};
  }

  Team team_;
};

TEST_F(Tokens, OneMadeByANarrowOneIsAsNarrow) {
  const std::string narrow =
      team_.token({.user = "jasper", .ceiling = Role::kMember, .projects = {"velvet"}});

  const access::Token child = made(request(narrow, {.ceiling = Role::kAdmin}));

  EXPECT_EQ(child.ceiling, Role::kMember);
  EXPECT_EQ(child.projects, std::vector<std::string>{"velvet"});
  EXPECT_EQ(request(narrow, {.projects = {"green"}}).status, 404);
  EXPECT_EQ(request(narrow, {.user = "rudi"}).status, 403);
}

TEST_F(Tokens, ASessionMadeOfANarrowOneIsAsNarrow) {
  const std::string narrow =
      team_.token({.user = "rudi", .ceiling = Role::kViewer, .projects = {"velvet"}});

  const access::Token session = made(request(narrow, {.ceiling = Role::kAdmin}, "/v1/login"));

  EXPECT_EQ(session.kind, TokenKind::kApi);
  EXPECT_EQ(session.ceiling, Role::kViewer);
  EXPECT_EQ(session.projects, std::vector<std::string>{"velvet"});
}

TEST_F(Tokens, OneMadeByAProgramsDoesNotOutliveIt) {
  const std::string shortlived =
      team_.token({.user = "sam", .lifetime = std::chrono::seconds(3600)});
  const base::Time end = team_.clock().now() + std::chrono::seconds(3600);

  EXPECT_LE(*made(request(shortlived, {})).expires, end);
  EXPECT_LE(*made(request(shortlived, {.lifetime = std::chrono::hours(9999)})).expires, end);
  const http::Response login = request(shortlived, {}, "/v1/login");
  EXPECT_LE(*made(login).expires, end);
  const std::string session = api::new_token_from_json(login.body)->text;
  const access::Token grandchild = made(request(session, {}));
  ASSERT_TRUE(grandchild.expires) << "by way of a login it lives for ever";
  EXPECT_LE(*grandchild.expires, end);
}

TEST_F(Tokens, ANarrowOneSeesAndRevokesItselfAlone) {
  const std::string narrow = team_.token({.user = "jasper", .projects = {"green"}});
  const auto id = access::parse_token(narrow)->id;

  const auto seen = api::tokens_from_json(team_.ask({.path = "/v1/tokens", .token = narrow}).body);

  ASSERT_TRUE(seen);
  ASSERT_EQ(seen->size(), 1U);
  EXPECT_EQ(seen->front().id, id);
  const auto other = access::parse_token(team_.token_of("admin"))->id;
  EXPECT_EQ(team_.ask({.method = "DELETE", .path = "/v1/tokens/" + other, .token = narrow}).status,
            404);
  EXPECT_EQ(team_.ask({.method = "DELETE", .path = "/v1/tokens/" + id, .token = narrow}).status,
            204);
  EXPECT_EQ(team_.ask({.path = "/v1/whoami", .token = narrow}).status, 401);
}

TEST_F(Tokens, AnInvitationIsGoodForOneLogin) {
  const std::string& invitation = team_.token_of("invited");

  const http::Response first = request(invitation, {}, "/v1/login");
  ASSERT_EQ(first.status, 201);
  const std::string session = api::new_token_from_json(first.body)->text;

  EXPECT_EQ(request(invitation, {}, "/v1/login").status, 401);
  EXPECT_EQ(team_.ask({.path = "/v1/users", .token = session}).status, 200);
}

// --- without a sandbox a job is as good as the server

TEST(WrongUser, OnlyAnAdminOfTheServerRunsAJobWithoutASandbox) {
  Team team;
  job::JobSpec spec = velvet_spec("bare", 0);
  spec.sandbox = job::Sandbox::kNone;
  for (const std::string dry_run : {"true", "false"}) {
    for (const auto& [caller, status] : std::map<std::string, int>{
             {"stranger", 404}, {"viewer", 403}, {"member", 403}, {"admin", 403}}) {
      EXPECT_EQ(team.ask({.method = "POST",
                          .path = "/v1/jobs",
                          .query = {{"dry_run", dry_run}},
                          .body = api::spec_to_json(spec),
                          .token = team.token_of(caller)})
                    .status,
                status)
          << caller;
    }
  }
  EXPECT_EQ(team.ask({.method = "POST",
                      .path = "/v1/jobs",
                      .body = api::spec_to_json(spec),
                      .token = team.token_of("server admin")})
                .status,
            201);

  Row exec = exec_rows().back();
  exec.ask.path = "/v1/jobs/bare/exec";
  exec.ask.query["task"] = "main";
  EXPECT_EQ(ask_as(team, exec, "member").status, 403);
  EXPECT_EQ(ask_as(team, exec, "server admin").status, 101);
  exec.ask.token.clear();
  exec.ask.over_unix_socket = true;
  EXPECT_EQ(team.ask(exec.ask).status, 101);
}

// --- what was before a project, and what becomes of it

TEST(WrongUser, AnAdminOfAProjectReadsNothingOfOneThatBoreItsName) {
  Team team;
  const access::Actor rudi{.user = "rudi"};
  const auto records = [&](const std::string& caller) {
    return team
        .ask({.path = "/v1/audit",
              .query = {{"project", "velvet-spare"}},
              .token = team.token_of(caller)})
        .body;
  };
  ASSERT_TRUE(team.accounts().set_secret("velvet-spare", "OLD", "x", rudi));
  team.clock().advance(std::chrono::seconds(1));
  ASSERT_TRUE(team.controller().remove_project("velvet-spare", rudi));
  team.clock().advance(std::chrono::seconds(1));
  ASSERT_TRUE(team.controller().create_project({.name = "velvet-spare"}, rudi));
  access::User jasper = *team.accounts().user("jasper");
  jasper.projects["velvet-spare"] = Role::kAdmin;
  ASSERT_TRUE(team.accounts().set_user(jasper, rudi));
  ASSERT_TRUE(team.accounts().set_secret("velvet-spare", "NEW", "x", rudi));

  EXPECT_EQ(records("admin").find("OLD"), std::string::npos) << records("admin");
  EXPECT_NE(records("admin").find("NEW"), std::string::npos);
  EXPECT_NE(records("server viewer").find("OLD"), std::string::npos);
}

TEST(WrongUser, AStreamEndsWhenItsProjectIsMovedAway) {
  for (const char* const path : {"/v1/jobs/quicksilver/logs", "/v1/watch/events"}) {
    Team team;
    team.add_user("onyx", {{"umbrella", Role::kViewer}});
    TeamServer::Ask ask = get(path);
    ask.query[path == std::string("/v1/watch/events") ? "name" : "follow"] =
        path == std::string("/v1/watch/events") ? "quicksilver" : "true";
    ask.token = team.token({.user = "onyx"});
    const http::Response answer = team.ask(ask);
    ASSERT_EQ(answer.status, 200) << path << answer.body;

    job::Project velvet = team.controller().project("velvet")->project;
    velvet.parent.clear();
    ASSERT_TRUE(team.controller().set_project(velvet, {.user = "rudi"}));
    team.engine().logs["launcher"] += "azurite\n";
    ASSERT_TRUE(team.controller().stop("quicksilver", true));
    team.settle();

    EXPECT_EQ(team.read(answer.stream), "(end)") << path;
  }
}

// --- two projects may have jobs of one name

TEST(WrongUser, ANameMeansTheJobThatTheCallerSees) {
  Team team;
  team.submit(single_job("obsidian", "green", 0), "sam");
  const auto ask = [&](const std::string& path, const std::string& caller,
                       std::map<std::string, std::string> query = {}) {
    return team.ask({.path = path, .query = std::move(query), .token = team.token_of(caller)});
  };

  const auto green = api::job_from_json(ask("/v1/jobs/obsidian", "stranger").body);
  ASSERT_TRUE(green);
  EXPECT_EQ(green->spec.project, "green");
  EXPECT_EQ(api::job_from_json(ask("/v1/jobs/obsidian", "viewer").body)->spec.project, "velvet");
  EXPECT_EQ(ask("/v1/jobs/obsidian", "member").status, 409) << "sees both";
  EXPECT_EQ(ask("/v1/jobs/obsidian", "member", {{"project", "velvet"}}).status, 200);
  EXPECT_EQ(ask("/v1/jobs/" + green->id, "member").status, 200);
  EXPECT_EQ(ask("/v1/jobs/" + green->id, "viewer").status, 404);
}

TEST(WrongUser, TheSameIdempotencyKeyOfAnotherUserIsAnother) {
  Team team;
  const std::string key = "run-1";
  const auto first = team.controller().submit(velvet_spec("obsidian-two", 1), "hyacinth\n" + key,
                                              {.user = "hyacinth"});
  ASSERT_TRUE(first);

  const job::JobSpec spec = single_job("green-two", "green", 0);
  const http::Response answer = team.ask({.method = "POST",
                                          .path = "/v1/jobs",
                                          .body = api::spec_to_json(spec),
                                          .token = team.token_of("stranger"),
                                          .headers = {{"idempotency-key", key}}});

  ASSERT_EQ(answer.status, 201) << answer.body;
  EXPECT_EQ(api::job_from_json(answer.body)->spec.name, "green-two");
}

}  // namespace muster::server
