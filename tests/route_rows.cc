#include "route_rows.h"

#include <map>
#include <utility>

#include "api/account_wire.h"
#include "api/cluster_wire.h"
#include "api/file_wire.h"
#include "api/notification_wire.h"
#include "api/schedule_wire.h"
#include "api/sweep_wire.h"
#include "api/wire.h"

namespace muster::server {
namespace {

using access::Role;

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
      {"GET /v1/list", get("/v1/list"), 200, 200, 200, 200, 200, 200},
      {"GET /v1/list", get("/v1/list", {{"project", "velvet"}}), 404, 200, 200, 200, 200, 200},
      {"GET /v1/log-search", get("/v1/log-search", {{"grep", "t"}}), 200, 200, 200, 200, 200, 200},
      {"GET /v1/log-search", get("/v1/log-search", {{"grep", "t"}, {"project", "velvet"}}), 404,
       200, 200, 200, 200, 200},
      {"GET /v1/log-search", get("/v1/log-search"), 400, 400, 400, 400, 400, 400},
      {"POST /v1/job-file", send("POST", "/v1/job-file", R"({"name": "a", "command": "b"})"), 200,
       200, 200, 200, 200, 200},
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
      {"GET /v1/jobs/{name}/log-window", get(job + "/log-window"), 404, 200, 200, 200, 200, 200},
      {"GET /v1/jobs/{name}/log-window", get(job + "/log-window", {{"task", "none"}}), 404, 404,
       404, 404, 404, 404},
      {"GET /v1/jobs/{name}/log-search", get(job + "/log-search", {{"q", "t"}}), 404, 200, 200, 200,
       200, 200},
      {"GET /v1/jobs/{name}/log-search", get(job + "/log-search"), 400, 400, 400, 400, 400, 400},
      {"GET /v1/jobs/{name}/log-file", get(job + "/log-file", {{"task", "launcher"}}), 404, 200,
       200, 200, 200, 200},
      {"GET /v1/watch/jobs", get("/v1/watch/jobs"), 200, 200, 200, 200, 200, 200},
      {"GET /v1/watch/jobs", get("/v1/watch/jobs", {{"project", "velvet"}}), 404, 200, 200, 200,
       200, 200},
      {"GET /v1/watch/events", get("/v1/watch/events"), 200, 200, 200, 200, 200, 200},
      {"GET /v1/watch/events", get("/v1/watch/events", {{"project", "velvet"}}), 404, 200, 200, 200,
       200, 200},
  };
}

std::vector<Row> array_rows() {
  const std::string array = "/v1/arrays/malachite";
  const TeamServer::Ask create =
      send("POST", "/v1/jobs", api::spec_to_json(velvet_array("obsidian-array")));
  const auto acts = [&](const std::string& action, int answer) {
    return Row{"POST /v1/arrays/{name}/" + action,
               send("POST", array + "/" + action, action == "rerun" ? "{}" : ""),
               404,
               403,
               answer,
               answer,
               403,
               answer};
  };
  return {
      {"POST /v1/jobs", create, 404, 403, 202, 202, 403, 202},
      {"GET /v1/arrays", get("/v1/arrays"), 200, 200, 200, 200, 200, 200},
      {"GET /v1/arrays", get("/v1/arrays", {{"project", "velvet"}}), 404, 200, 200, 200, 200, 200},
      {"GET /v1/arrays/{name}", get(array), 404, 200, 200, 200, 200, 200},
      {"GET /v1/arrays/{name}/logs", get(array + "/logs"), 404, 200, 200, 200, 200, 200},
      acts("stop", 200),
      acts("suspend", 200),
      acts("resume", 200),
      acts("rerun", 409),
      {"DELETE /v1/arrays/{name}", send("DELETE", array), 404, 403, 409, 409, 403, 409},
  };
}

std::vector<Row> schedule_rows() {
  const std::string schedule = "/v1/schedules/peridot";
  const TeamServer::Ask create =
      send("POST", "/v1/schedules", api::schedule_spec_to_json(velvet_schedule("obsidian-again")));
  const auto acts = [&](const std::string& action, int answer) {
    return Row{"POST /v1/schedules/{name}/" + action,
               send("POST", schedule + "/" + action),
               404,
               403,
               answer,
               answer,
               403,
               answer};
  };
  return {
      {"GET /v1/schedules", get("/v1/schedules"), 200, 200, 200, 200, 200, 200},
      {"GET /v1/schedules", get("/v1/schedules", {{"project", "velvet"}}), 404, 200, 200, 200, 200,
       200},
      {"POST /v1/schedules", create, 404, 403, 201, 201, 403, 201},
      {"GET /v1/schedules/{name}", get(schedule), 404, 200, 200, 200, 200, 200},
      acts("pause", 200),
      acts("resume", 200),
      acts("run", 201),
      {"DELETE /v1/schedules/{name}", send("DELETE", schedule), 404, 403, 204, 204, 403, 204},
  };
}

std::vector<Row> sweep_rows() {
  const sweep::SweepSpec spec = velvet_sweep("obsidian-sweep");
  const std::string sweep = "/v1/sweeps/amethyst";
  const TeamServer::Ask create = send("POST", "/v1/sweeps", api::sweep_spec_to_json(spec));
  TeamServer::Ask plan = create;
  plan.query = {{"dry_run", "true"}};
  const auto acts = [&](const std::string& action) {
    return Row{"POST /v1/sweeps/{name}/" + action,
               send("POST", sweep + "/" + action),
               404,
               403,
               200,
               200,
               403,
               200};
  };
  return {
      {"GET /v1/sweeps", get("/v1/sweeps"), 200, 200, 200, 200, 200, 200},
      {"GET /v1/sweeps", get("/v1/sweeps", {{"project", "velvet"}}), 404, 200, 200, 200, 200, 200},
      {"POST /v1/sweeps", create, 404, 403, 201, 201, 403, 201},
      {"POST /v1/sweeps", plan, 404, 403, 200, 200, 403, 200},
      {"GET /v1/sweeps/{name}", get(sweep), 404, 200, 200, 200, 200, 200},
      acts("stop"),
      acts("pause"),
      acts("resume"),
      {"DELETE /v1/sweeps/{name}", send("DELETE", sweep), 404, 403, 409, 409, 403, 409},
  };
}

std::vector<Row> exec_rows() {
  const TeamServer::Ask upgrade = ask_to_execute("quicksilver", "launcher");
  TeamServer::Ask plain = upgrade;
  plain.headers.clear();
  const std::string route = "GET /v1/jobs/{name}/exec";
  return {{route, plain, 404, 403, 400, 400, 403, 400},
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
      {"GET /v1/projects/{name}/usage", get(velvet + "/usage"), 404, 200, 200, 200, 200, 200},
      {"GET /v1/projects/{name}/usage", get(velvet + "/usage", {{"format", "csv"}}), 404, 200, 200,
       200, 200, 200},
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
      {"POST /v1/ui/codes", send("POST", "/v1/ui/codes"), 201, 201, 201, 201, 201, 201},
      // Only for browsers: a request without the headers that name its page is refused.
      {.route = "POST /v1/ui/session",
       .ask = send("POST", "/v1/ui/session", R"({"code": "x"})"),
       .stranger = 403,
       .viewer = 403,
       .member = 403,
       .admin = 403,
       .server_viewer = 403,
       .server_admin = 403,
       .nobody = 403},
      {"DELETE /v1/ui/port", send("DELETE", "/v1/ui/port"), 403, 403, 403, 403, 403, 403},
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
      {"POST /v1/what-if", send("POST", "/v1/what-if", R"({"add_nodes": 2, "like": "gpu-1"})"), 403,
       403, 403, 403, 200, 200},
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

}  // namespace

std::vector<Row> rows() {
  const Team team;
  std::vector<Row> all = job_rows();
  for (const auto& more :
       {array_rows(), artifact_rows(), schedule_rows(), sweep_rows(), attach_rows(), copy_rows(),
        exec_rows(), forward_rows(), project_rows(), notification_rows(team), tree_rows(),
        account_rows(team), server_rows()}) {
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

TeamServer::Ask ask_to_execute(const std::string& job, const std::string& task) {
  return {.path = "/v1/jobs/" + job + "/exec",
          .query = {{"task", task}, {"command", R"(["azurite"])"}},
          .headers = {{"connection", "Upgrade"},
                      {"upgrade", "websocket"},
                      {"sec-websocket-version", "13"},
                      {"sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="}}};
}

http::Response ask_as(Team& team, const Row& row, const std::string& caller) {
  TeamServer::Ask ask = row.ask;
  ask.token = team.token_of(caller);
  return team.ask(ask);
}

std::string title(const Row& row, const std::string& caller) {
  std::string text = row.route + " (" + row.ask.path;
  for (const auto& [name, value] : row.ask.query) text += " " + name + "=" + value;
  return text + ") as " + caller;
}

}  // namespace muster::server
