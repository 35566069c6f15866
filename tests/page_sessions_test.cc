// Sessions of the web page. A cookie has exactly the rights of its token. The server refuses requests
// of a page of another site, requests under another host name, and codes that were used, were guessed
// or have expired.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "api/account_wire.h"
#include "given_away.h"
#include "page/page_files.h"
#include "route_rows.h"
#include "velvet_team.h"

namespace muster::server {
namespace {

using PageHeaders = std::map<std::string, std::string>;

const std::string kHost = "muster.example.org:7443";
const std::string kOrigin = "https://" + kHost;

/// The request as the web page sends it, with the token in its cookie.
TeamServer::Ask of_page(TeamServer::Ask ask, const std::string& token) {
  ask.headers["host"] = kHost;
  ask.headers["origin"] = kOrigin;
  ask.headers["sec-fetch-site"] = "same-origin";
  ask.headers["x-muster-request"] = "ui";
  if (!token.empty()) ask.headers["cookie"] = "other=1; __Host-muster=" + token;
  return ask;
}

/// The same request, sent to the loopback port.
TeamServer::Ask of_local_page(TeamServer::Ask ask, const std::string& token) {
  ask = of_page(std::move(ask), token);
  ask.from = "loopback";
  ask.headers["host"] = "ui-k3x9a2.localhost:41873";
  ask.headers["origin"] = "http://ui-k3x9a2.localhost:41873";
  ask.headers["cookie"] = "muster-41873=" + token;
  return ask;
}

TeamServer::Ask login(const std::string& code) {
  return of_page(
      {.method = "POST", .path = "/v1/ui/session", .body = "{\"code\": \"" + code + "\"}"}, "");
}

/// Asks whose session a code would open.
TeamServer::Ask checked_code(const std::string& code) {
  return of_page({.method = "POST",
                  .path = "/v1/ui/session",
                  .body = "{\"code\": \"" + code + "\", \"check\": true}"},
                 "");
}

std::string code_of(Team& team, const std::string& caller) {
  const http::Response answer =
      team.ask({.method = "POST", .path = "/v1/ui/codes", .token = team.token_of(caller)});
  const auto code = api::page_code_from_json(answer.body);
  EXPECT_TRUE(code) << answer.body;
  EXPECT_EQ(code->url, kOrigin + "/ui/#code=" + code->code);
  return code->code;
}

/// The token in the answer's cookie.
std::string token_in(const http::Response& answer) {
  const auto cookie = answer.headers.find("set-cookie");
  if (cookie == answer.headers.end()) return "";
  const std::string& text = cookie->second;
  const size_t start = text.find('=') + 1;
  return text.substr(start, text.find(';') - start);
}

TeamServer::Ask stop_job() {
  return {.method = "POST", .path = "/v1/jobs/quicksilver/stop"};
}

// --- rights

TEST(PageSession, HasTheRightsOfItsTokenOnEveryRoute) {
  for (const Row& row : rows()) {
    if (row.route == "POST /v1/ui/session") continue;
    for (const std::string caller :
         {"nobody", "forged", "expired", "revoked", "disabled", "invited", "stranger", "elsewhere",
          "viewer", "reading", "member", "admin", "server viewer", "server admin"}) {
      Team team;
      const http::Response answer = team.ask(of_page(row.ask, team.token_of(caller)));
      EXPECT_EQ(answer.status, expected(row, caller)) << title(row, caller) << "\n" << answer.body;
    }
  }
}

TEST(PageSession, ComesFromACodeAndIsListedAndRevoked) {
  Team team;
  const http::Response opened = team.ask(login(code_of(team, "member")));
  ASSERT_EQ(opened.status, 200) << opened.body;
  const std::string cookie = opened.headers.at("set-cookie");
  EXPECT_EQ(cookie.substr(cookie.find(';')),
            "; Path=/; HttpOnly; SameSite=Strict; Secure; Max-Age=604800");
  EXPECT_TRUE(cookie.starts_with("__Host-muster=muster_"));
  const std::string token = token_in(opened);

  const http::Response who = team.ask(of_page({.path = "/v1/whoami"}, token));
  EXPECT_EQ(api::whoami_from_json(who.body)->user, "hyacinth");
  EXPECT_EQ(who.headers.at("cache-control"), "no-store");
  const http::Response tokens = team.ask(of_page({.path = "/v1/tokens"}, token));
  EXPECT_NE(tokens.body.find("web page"), std::string::npos) << tokens.body;

  const http::Response left = team.ask(of_page({.method = "POST", .path = "/v1/logout"}, token));
  EXPECT_EQ(left.status, 204);
  EXPECT_TRUE(left.headers.at("set-cookie").ends_with("Max-Age=0"));
  EXPECT_EQ(team.ask(of_page({.path = "/v1/whoami"}, token)).status, 401);
}

TEST(PageSession, OfANarrowTokenIsAsNarrow) {
  Team team;
  const std::string token = token_in(team.ask(login(code_of(team, "elsewhere"))));

  EXPECT_EQ(team.ask(of_page({.path = "/v1/jobs/quicksilver"}, token)).status, 404);
  EXPECT_EQ(team.ask(of_page({.path = "/v1/jobs/green-small"}, token)).status, 200);
}

TEST(PageSession, EndsWithItsUserItsTokenAndItsTime) {
  Team team;
  const std::string token = token_in(team.ask(login(code_of(team, "member"))));
  const std::string other = token_in(team.ask(login(code_of(team, "viewer"))));
  EXPECT_TRUE(team.accounts().remove_user("hyacinth", {}));

  const http::Response refused = team.ask(of_page({.path = "/v1/jobs"}, token));
  EXPECT_EQ(refused.status, 401);
  EXPECT_TRUE(refused.headers.at("set-cookie").ends_with("Max-Age=0"));

  team.clock().advance(kPageSessionLifetime + std::chrono::seconds(1));
  EXPECT_EQ(team.ask(of_page({.path = "/v1/jobs"}, other)).status, 401);
}

TEST(PageSession, OfTheOwnerOfTheUnixSocketHasTheRoleOfAnAdmin) {
  Team team;
  const http::Response made =
      team.ask({.method = "POST", .path = "/v1/ui/codes", .over_unix_socket = true});
  const http::Response opened = team.ask(login(api::page_code_from_json(made.body)->code));
  ASSERT_EQ(opened.status, 200) << opened.body;

  const auto who =
      api::whoami_from_json(team.ask(of_page({.path = "/v1/whoami"}, token_in(opened))).body);
  EXPECT_EQ(who->user, "ada");
  EXPECT_EQ(who->server_role, access::Role::kAdmin);
}

TEST(PageSession, UsesUpAnInvitation) {
  Team team;
  const std::string invitation = team.token_of("invited");
  EXPECT_EQ(team.ask(login(invitation)).status, 200);
  EXPECT_EQ(team.ask(login(invitation)).status, 401);
}

// --- codes

TEST(PageCode, IsValidOnceAndForAMinute) {
  Team team;
  const std::string code = code_of(team, "admin");
  EXPECT_EQ(team.ask(login(code)).status, 200);
  EXPECT_EQ(team.ask(login(code)).status, 401);

  const std::string late = code_of(team, "admin");
  team.clock().advance(PageCodes::kLifetime);
  EXPECT_EQ(team.ask(login(late)).status, 401);
}

TEST(PageCode, IsNoToken) {
  Team team;
  const std::string code = code_of(team, "admin");
  EXPECT_EQ(team.ask({.path = "/v1/whoami", .token = code}).status, 401);
  EXPECT_EQ(team.ask(of_page({.path = "/v1/whoami"}, code)).status, 401);
}

TEST(PageCode, CannotBeGuessed) {
  Team team;
  std::string code = code_of(team, "admin");
  code.back() = code.back() == 'a' ? 'b' : 'a';
  int refused = 0;
  int status = 0;
  while ((status = team.ask(refused % 2 == 0 ? login(code) : checked_code(code)).status) == 401)
    ++refused;
  EXPECT_EQ(status, 429);
  EXPECT_LE(refused, 20);
}

TEST(PageCode, IsInvalidOnceTheTokenOfItsCallerIsRevoked) {
  Team team;
  const std::string code = code_of(team, "member");
  const auto token = access::parse_token(team.token_of("member"));
  EXPECT_TRUE(team.accounts().revoke(token->id, {}));

  EXPECT_EQ(team.ask(login(code)).status, 401);
}

TEST(PageCode, DisplacesTheOldestOfManyOfOneUser) {
  Team team;
  const std::string first = code_of(team, "member");
  const std::string others = code_of(team, "viewer");
  team.clock().advance(std::chrono::seconds(1));
  for (size_t i = 0; i < PageCodes::kMostOfOneUser; ++i) code_of(team, "member");

  EXPECT_EQ(team.ask(login(first)).status, 401);
  EXPECT_EQ(team.ask(login(others)).status, 200);
}

TEST(PageCode, IsNotExchangedForThePageOfAnotherSite) {
  Team team;
  TeamServer::Ask foreign = login(code_of(team, "member"));
  foreign.headers["origin"] = "https://evil.example.org";
  foreign.headers.erase("sec-fetch-site");
  const http::Response refused = team.ask(foreign);
  EXPECT_EQ(refused.status, 403);
  EXPECT_FALSE(refused.headers.contains("set-cookie"));
}

TEST(PageCode, IsCheckedWithoutASession) {
  for (const bool is_invitation : {false, true}) {
    Team team;
    const std::string code = is_invitation ? team.token_of("invited") : code_of(team, "member");
    const size_t tokens = team.accounts().tokens(std::nullopt).size();
    const http::Response checked = team.ask(checked_code(code));
    ASSERT_EQ(checked.status, 200) << checked.body;
    EXPECT_FALSE(checked.headers.contains("set-cookie"));
    EXPECT_EQ(team.accounts().tokens(std::nullopt).size(), tokens);

    const http::Response opened = team.ask(login(code));
    ASSERT_EQ(opened.status, 200) << opened.body;
    EXPECT_EQ(api::whoami_from_json(checked.body)->user, api::whoami_from_json(opened.body)->user);
    EXPECT_EQ(team.ask(checked_code(code)).status, 401);
  }
}

TEST(PageCode, OfTheOwnerOfTheUnixSocketIsCheckedAsACodeWithoutAToken) {
  Team team;
  const http::Response made =
      team.ask({.method = "POST", .path = "/v1/ui/codes", .over_unix_socket = true});
  const auto of_owner =
      api::whoami_from_json(team.ask(checked_code(api::page_code_from_json(made.body)->code)).body);
  EXPECT_EQ(of_owner->user, "ada");
  EXPECT_EQ(of_owner->token, "");
  const auto of_member =
      api::whoami_from_json(team.ask(checked_code(code_of(team, "member"))).body);
  EXPECT_NE(of_member->token, "");
}

TEST(PageCode, IsCheckedOnlyWithinItsMinuteAndForItsOwnPage) {
  Team team;
  const std::string code = code_of(team, "member");
  TeamServer::Ask foreign = checked_code(code);
  foreign.headers["origin"] = "https://evil.example.org";
  EXPECT_EQ(team.ask(foreign).status, 403);
  team.clock().advance(PageCodes::kLifetime);
  EXPECT_EQ(team.ask(checked_code(code)).status, 401);
}

// --- requests of a page of another site

TEST(ForeignPage, ChangesNothing) {
  const std::vector<std::pair<std::string, PageHeaders>> attacks{
      {"a form of another site", {{"origin", "https://evil.example.org"}}},
      {"a sandboxed frame", {{"origin", "null"}}},
      {"the same host without TLS", {{"origin", "http://" + kHost}}},
      {"another port of the same host", {{"origin", "https://muster.example.org"}}},
      {"a longer name", {{"origin", kOrigin + ".evil.org"}}},
      {"no origin", {{"origin", ""}}},
      {"no header of the page", {{"x-muster-request", ""}}},
      {"another site, as the browser reports", {{"sec-fetch-site", "cross-site"}}},
      {"another port of the site, as the browser reports", {{"sec-fetch-site", "same-site"}}},
  };
  for (const auto& [title, headers] : attacks) {
    Team team;
    const size_t before = team.accounts().audit({.limit = 1000})->size();
    TeamServer::Ask attack = of_page(stop_job(), team.token_of("member"));
    for (const auto& [name, value] : headers) {
      attack.headers[name] = value;
      if (value.empty()) attack.headers.erase(name);
    }
    const http::Response answer = team.ask(attack);
    EXPECT_EQ(answer.status, 403) << title;
    EXPECT_EQ(leaked_word(answer, attack, ""), "") << title;
    EXPECT_EQ(team.accounts().audit({.limit = 1000})->size(), before) << title;
  }
}

TEST(ForeignPage, ReadsNothing) {
  Team team;
  for (const PageHeaders& headers :
       {PageHeaders{{"origin", "https://evil.example.org"}}, PageHeaders{{"origin", "null"}},
        PageHeaders{{"sec-fetch-site", "cross-site"}},
        PageHeaders{{"sec-fetch-site", "same-site"}}}) {
    TeamServer::Ask attack = of_page({.path = "/v1/jobs"}, team.token_of("member"));
    attack.headers.erase("sec-fetch-site");
    attack.headers.erase("origin");
    for (const auto& [name, value] : headers) attack.headers[name] = value;
    EXPECT_EQ(team.ask(attack).status, 403);
  }
}

TEST(ForeignPage, OpensNoWebSocket) {
  Team team;
  for (const std::string origin : {"https://evil.example.org", "null", ""}) {
    TeamServer::Ask attack =
        of_page(ask_to_execute("quicksilver", "launcher"), team.token_of("member"));
    attack.headers["origin"] = origin;
    if (origin.empty()) attack.headers.erase("origin");
    attack.headers.erase("sec-fetch-site");
    EXPECT_EQ(team.ask(attack).status, 403) << origin;
  }
  // The page cannot add a header to a WebSocket.
  TeamServer::Ask own = of_page(ask_to_execute("quicksilver", "launcher"), team.token_of("member"));
  own.headers.erase("x-muster-request");
  EXPECT_TRUE(team.ask(own).websocket);
}

TEST(ForeignPage, DoesNotConcernProgramsWithATokenOfTheirOwn) {
  Team team;
  TeamServer::Ask program = stop_job();
  program.token = team.token_of("member");
  program.headers = {{"origin", "https://tool.example.org"}, {"host", kHost}};
  EXPECT_EQ(team.ask(program).status, 200);
}

TEST(ForeignPage, HasNoCookieForTheUnixSocket) {
  Team team;
  TeamServer::Ask local = of_page({.path = "/v1/whoami"}, team.token_of("viewer"));
  local.over_unix_socket = true;
  EXPECT_EQ(api::whoami_from_json(team.ask(local).body)->user, "ada");
  EXPECT_EQ(team.ask({.path = "/ui/", .over_unix_socket = true}).status, 404);
}

// --- the loopback port

TEST(LoopbackPort, AnswersOnlyUnderItsOwnNames) {
  Team team;
  EXPECT_TRUE(team.door().open());
  const std::string token = team.token_of("member");
  EXPECT_EQ(team.ask(of_local_page({.path = "/v1/whoami"}, token)).status, 200);
  for (const std::string host : {"evil.example.org", "evil.example.org:41873", "127.0.0.1:80",
                                 "ui-k3x9a2.localhost", "ui-other.localhost:41873", ""}) {
    for (const std::string path : {"/", "/ui/", "/v1/whoami", "/healthz", "/openapi.json"}) {
      TeamServer::Ask attack = of_local_page({.path = path}, token);
      attack.headers["host"] = host;
      attack.headers["origin"] = "http://" + host;
      EXPECT_EQ(team.ask(attack).status, 421) << host << path;
    }
  }
  team.door().close();
  EXPECT_EQ(team.ask(of_local_page({.path = "/ui/"}, token)).status, 421);
}

TEST(LoopbackPort, TakesNoBearerTokens) {
  Team team;
  EXPECT_TRUE(team.door().open());
  TeamServer::Ask ask = of_local_page({.path = "/v1/whoami"}, "");
  ask.headers.erase("cookie");
  ask.token = team.token_of("server admin");
  EXPECT_EQ(team.ask(ask).status, 401);
}

TEST(LoopbackPort, HasACookieOfItsOwnName) {
  Team team;
  EXPECT_TRUE(team.door().open());
  TeamServer::Ask ask = of_local_page(login(code_of(team, "member")), "");
  ask.headers.erase("cookie");
  const http::Response opened = team.ask(ask);
  ASSERT_EQ(opened.status, 200) << opened.body;
  const std::string cookie = opened.headers.at("set-cookie");
  EXPECT_TRUE(cookie.starts_with("muster-41873=muster_")) << cookie;
  EXPECT_EQ(cookie.find("Secure"), std::string::npos);
  EXPECT_EQ(team.ask(of_local_page({.path = "/v1/whoami"}, token_in(opened))).status, 200);
}

TEST(LoopbackPort, IsClosedOnlyOverTheUnixSocket) {
  Team team;
  EXPECT_TRUE(team.door().open());
  EXPECT_EQ(
      team.ask({.method = "DELETE", .path = "/v1/ui/port", .token = team.token_of("server admin")})
          .status,
      403);
  EXPECT_EQ(team.ask({.method = "DELETE", .path = "/v1/ui/port", .over_unix_socket = true}).status,
            204);
  EXPECT_FALSE(team.door().address());
}

// --- the files of the page

TEST(PageFile, ComesWithAStrictPolicy) {
  Team team;
  const http::Response page = team.ask({.path = "/ui/"});
  ASSERT_EQ(page.status, 200);
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_EQ(page.headers.at("content-encoding"), "gzip");
  EXPECT_EQ(page.headers.at("cache-control"), "no-cache");
  EXPECT_EQ(page.headers.at("x-content-type-options"), "nosniff");
  EXPECT_EQ(page.headers.at("referrer-policy"), "no-referrer");
  EXPECT_EQ(page.headers.at("cross-origin-opener-policy"), "same-origin");
  const std::string policy = page.headers.at("content-security-policy");
  for (const std::string part :
       {"default-src 'none'", "script-src 'self'", "style-src 'self'", "base-uri 'none'",
        "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"}) {
    EXPECT_NE(policy.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
}

TEST(PageFile, IsCachedByBrowsersUntilItChanges) {
  Team team;
  const http::Response page = team.ask({.path = "/ui/"});
  const http::Response same =
      team.ask({.path = "/ui/", .headers = {{"if-none-match", page.headers.at("etag")}}});
  EXPECT_EQ(same.status, 304);
  EXPECT_EQ(same.body, "");
  for (const page::PageFile& file : page::page_files()) {
    if (!file.path.starts_with("assets/")) continue;
    const http::Response asset = team.ask({.path = "/ui/" + std::string(file.path)});
    EXPECT_EQ(asset.status, 200);
    EXPECT_NE(asset.headers.at("cache-control").find("immutable"), std::string::npos);
  }
}

TEST(PageFile, IsServedOnlyForTheViewsOfThePage) {
  Team team;
  for (const std::string path : {"/ui/", "/ui/jobs", "/ui/jobs/dist", "/ui/jobs/dist/logs/main"}) {
    EXPECT_EQ(team.ask({.path = path}).status, 200) << path;
  }
  for (const std::string path :
       {"/ui/secret", "/ui/assets/none.js", "/ui/assets/", "/ui/jobs/a/b/c/d/e", "/ui//etc/passwd",
        "/uix", "/ui/index.html/x"}) {
    EXPECT_GE(team.ask({.path = path}).status, 400) << path;
  }
  EXPECT_EQ(team.ask({.method = "POST", .path = "/ui/"}).status, 405);
  const http::Response root = team.ask({.path = "/"});
  EXPECT_EQ(root.status, 303);
  EXPECT_EQ(root.headers.at("location"), "/ui/");
}

TEST(PageFile, IsRefusedOnlyToClientsThatRefuseGzip) {
  Team team;
  for (const std::string accepted : {"gzip, deflate, br", "*", "GZIP;q=0.5", "br, gzip;q=1.0"}) {
    EXPECT_EQ(team.ask({.path = "/ui/", .headers = {{"accept-encoding", accepted}}}).status, 200)
        << accepted;
  }
  for (const std::string refused : {"br", "gzip;q=0", "identity", "*;q=0", "gzip;q=0.000, br"}) {
    EXPECT_EQ(team.ask({.path = "/ui/", .headers = {{"accept-encoding", refused}}}).status, 406)
        << refused;
  }
}

}  // namespace
}  // namespace muster::server
