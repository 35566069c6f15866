// Whole commands against a fake shared server on TLS.
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "cli/cli_fixture.h"
#include "http/sockets.h"
#include "http/tls_session.h"

namespace muster::cli {

namespace {

class SharedServer : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    serve({.runs_on = true, .tls = true});
  }

  void TearDown() override {
    for (const char* name :
         {"MUSTER_SERVER", "MUSTER_TOKEN", "MUSTER_FINGERPRINT", "MUSTER_CONTEXT"}) {
      ::unsetenv(name);
    }
    Cli::TearDown();
  }

  std::string token_file(const std::string& token) const {
    std::ofstream(folder_ / "token") << token << "\n";
    return folder_ / "token";
  }

  Outcome log_in(const std::string& token, const Words& more = {}) const {
    Words words{"login",         server_->url(),         "--name",       "lab",
                "--fingerprint", server_->fingerprint(), "--token-file", token_file(token)};
    words.insert(words.end(), more.begin(), more.end());
    return muster(words);
  }

  std::string contexts() const {
    std::ostringstream text;
    text << std::ifstream(folder_ / "config/muster/contexts.json").rdbuf();
    return text.str();
  }

  /// As if the server had had another certificate at the login.
  void pin_another_certificate() const {
    std::string text = contexts();
    text.replace(text.find(server_->fingerprint()), server_->fingerprint().size(),
                 std::string(64, '0'));
    std::ofstream(folder_ / "config/muster/contexts.json") << text;
  }

  /// The exit code of a request with `token` in no context.
  int code_with(const std::string& token) const {
    ::setenv("MUSTER_SERVER", server_->url().c_str(), 1);
    ::setenv("MUSTER_FINGERPRINT", server_->fingerprint().c_str(), 1);
    ::setenv("MUSTER_TOKEN", token.c_str(), 1);
    const int code = muster({"list"}).code;
    for (const char* name : {"MUSTER_SERVER", "MUSTER_FINGERPRINT", "MUSTER_TOKEN"}) {
      ::unsetenv(name);
    }
    return code;
  }

  /// The word of `text` that is a token.
  static std::string token_in(const std::string& text) {
    const size_t begin = text.find("muster_");
    return begin == std::string::npos
               ? ""
               : text.substr(begin, text.find_first_of(" \n\"", begin) - begin);
  }
};

TEST_F(SharedServer, ReceivesTheCommandsAfterALogin) {
  const Outcome login = log_in(server_->first_token());
  EXPECT_EQ(login.code, 0) << login.err;
  EXPECT_EQ(login.out,
            "logged in to " + server_->url() +
                " as root until 2023-12-14T22:13:20Z\ncommands go to context 'lab' by default\n");

  EXPECT_EQ(muster({"context"}).out, "lab\n");
  const Outcome who = muster({"whoami"});
  EXPECT_NE(who.out.find("USER     root\nCONTEXT  lab\nSERVER   " + server_->url() + "\n"),
            std::string::npos)
      << who.out << who.err;
  EXPECT_NE(muster({"whoami", "-o", "json"}).out.find("\"user\":\"root\""), std::string::npos);
  EXPECT_NE(muster({"version"}).out.find("server 1 at " + server_->url() + " (context lab)\n"),
            std::string::npos);
  EXPECT_EQ(muster({"submit", "single", "a", "--", "true"}).out, "submitted a\n");
  EXPECT_EQ(muster({"list", "-o", "names"}).out, "a\n");
  EXPECT_NE(muster({"whoami", "--context", "local"}).out.find("FROM     local\n"),
            std::string::npos);
}

TEST_F(SharedServer, CtrlCEndsALoginThatGetsNoAnswer) {
  server_.reset();
  serve({.signal = SIGINT, .tls = true, .unanswered = "POST /v1/login"});

  const Outcome login = log_in(server_->first_token());

  EXPECT_EQ(login.code, 130);
  EXPECT_EQ(login.err, "muster: interrupted while waiting for the server\n");
}

TEST_F(SharedServer, CtrlCEndsALoginWhoseHandshakeGetsNoAnswer) {
  const auto listening = http::listen_on({.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(listening);
  std::thread interrupter([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    pollfd connection{.fd = listening->get(), .events = POLLIN, .revents = 0};
    ::poll(&connection, 1, -1);
    ::kill(::getpid(), SIGINT);
  });

  const Outcome login = muster({"login", "https://" + *http::listening_at(listening->get()),
                                "--token-file", token_file(server_->first_token())});
  interrupter.join();

  EXPECT_EQ(login.code, 130);
  EXPECT_EQ(login.err, "muster: interrupted while waiting for the server\n");
}

TEST_F(SharedServer, CtrlCEndsALoginWhileTheFingerprintIsRead) {
  const auto listening = http::listen_on({.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(listening);
  const auto identity =
      http::make_self_signed({"127.0.0.1"}, base::SystemClock().now(), std::chrono::hours(1));
  ASSERT_TRUE(identity);
  const auto context = http::server_context(*identity);
  ASSERT_TRUE(context);
  // The first connection shows the certificate, which is not trusted. The second one, which is to
  // read the fingerprint, gets no answer.
  std::thread interrupter([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    pollfd connection{.fd = listening->get(), .events = POLLIN, .revents = 0};
    ::poll(&connection, 1, -1);
    {
      const base::UniqueFd first(::accept(listening->get(), nullptr, nullptr));
      http::TlsSession session(*context, first.get(), http::TlsSession::Role::kServer);
      session.handshake();  // the socket blocks: until the client refuses the certificate
    }
    ::poll(&connection, 1, -1);
    ::kill(::getpid(), SIGINT);
  });

  const Outcome login = muster({"login", "https://" + *http::listening_at(listening->get()),
                                "--token-file", token_file(server_->first_token())});
  interrupter.join();

  EXPECT_EQ(login.code, 130) << login.err;
}

TEST_F(SharedServer, CtrlCLeavesAnEarlierSessionThatTheServerDoesNotEnd) {
  server_.reset();
  serve({.signal = SIGINT, .tls = true, .unanswered = "POST /v1/logout"});
  ASSERT_EQ(log_in(server_->first_token()).code, 0);

  const Outcome login = log_in(server_->first_token());

  EXPECT_EQ(login.code, 0) << login.err;
  EXPECT_NE(login.err.find("the earlier session could not be ended on the server: interrupted"),
            std::string::npos)
      << login.err;
}

TEST_F(SharedServer, ReplacesTheTokenByASessionAndNoOutputContainsEither) {
  const std::string token = server_->first_token();
  const Outcome login = log_in(token);
  const std::string session = token_in(contexts());

  EXPECT_NE(session, "");
  EXPECT_NE(session, token);
  for (const Words& words : {Words{"context", "list"}, Words{"context", "list", "-o", "json"},
                             Words{"whoami", "-o", "json"}, Words{"token", "list", "-o", "json"}}) {
    const Outcome outcome = muster(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (const std::string& text : {outcome.out, outcome.err, login.out, login.err}) {
      EXPECT_EQ(text.find(session), std::string::npos);
      EXPECT_EQ(text.find(token), std::string::npos);
    }
  }
}

TEST_F(SharedServer, GetsNoTokenIfItCannotBeVerified) {
  const std::string file = token_file(server_->first_token());

  const Outcome unknown = muster({"login", server_->url(), "--token-file", file});
  EXPECT_EQ(unknown.code, 4);
  EXPECT_NE(unknown.err.find("add --fingerprint " + server_->fingerprint()), std::string::npos)
      << unknown.err;
  const Outcome wrong = muster(
      {"login", server_->url(), "--token-file", file, "--fingerprint", std::string(64, '0')});
  EXPECT_NE(wrong.code, 0);
  EXPECT_EQ(wrong.err.find(server_->first_token()), std::string::npos);
  EXPECT_EQ(count_of("POST /v1/login"), 0);
  EXPECT_EQ(muster({"context"}).out, "local\n");
}

TEST_F(SharedServer, IsVerifiedByItsAuthorityToo) {
  std::ofstream(folder_ / "ca.pem") << server_->certificate();
  const std::string file = token_file(server_->first_token());

  const Outcome login =
      muster({"login", server_->url(), "--ca", folder_ / "ca.pem", "--token-file", file});

  EXPECT_EQ(login.code, 0) << login.err;
  EXPECT_EQ(muster({"list"}).code, 0);
  std::filesystem::remove(folder_ / "ca.pem");
  const Outcome gone = muster({"list"});
  EXPECT_EQ(gone.code, 2);
  EXPECT_NE(gone.err.find("--ca FILE"), std::string::npos) << gone.err;
}

TEST_F(SharedServer, KeepsItsTrustSettingsAtTheNextLogin) {
  ASSERT_EQ(log_in(server_->first_token()).code, 0);
  const std::string first = token_in(contexts());

  const Outcome again =
      muster({"login", server_->url(), "--token-file", token_file(server_->first_token())});

  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(muster({"context", "list", "-o", "names"}).out, "local\nlab\n");
  EXPECT_NE(token_in(contexts()), first);
  // The login has ended the first session.
  ::setenv("MUSTER_SERVER", server_->url().c_str(), 1);
  ::setenv("MUSTER_FINGERPRINT", server_->fingerprint().c_str(), 1);
  ::setenv("MUSTER_TOKEN", first.c_str(), 1);
  EXPECT_EQ(muster({"list"}).code, 4);
}

TEST_F(SharedServer, IsForgottenAfterALogout) {
  ASSERT_EQ(log_in(server_->first_token()).code, 0);

  EXPECT_EQ(muster({"logout"}).out, "logged out of " + server_->url() +
                                        "\ncommands go to context 'local' now, a server on this "
                                        "machine; log in again: muster login " +
                                        server_->url() + "\n");

  EXPECT_EQ(count_of("POST /v1/logout"), 1);
  EXPECT_EQ(muster({"context", "list", "-o", "names"}).out, "local\n");
  EXPECT_EQ(contexts().find("muster_"), std::string::npos);
  const Outcome local = muster({"logout"});
  EXPECT_EQ(local.code, 2);
  EXPECT_NE(local.err.find("muster logout CONTEXT"), std::string::npos);
}

TEST_F(SharedServer, IsForgottenEvenIfItIsUnreachable) {
  ASSERT_EQ(log_in(server_->first_token()).code, 0);
  server_.reset();

  EXPECT_EQ(muster({"list"}).code, 5);
  const Outcome outcome = muster({"logout", "lab"});

  EXPECT_EQ(outcome.code, 5);
  EXPECT_NE(outcome.err.find("muster token revoke ID"), std::string::npos) << outcome.err;
  EXPECT_EQ(contexts().find("muster_"), std::string::npos);
}

TEST_F(SharedServer, IsNotReportedToHaveEndedASessionIfItsCertificateIsAnother) {
  ASSERT_EQ(log_in(server_->first_token()).code, 0);
  const std::string session = token_in(contexts());
  pin_another_certificate();

  const Outcome outcome = muster({"logout"});

  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.out.find("logged out"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.err.find("could not be ended on the server"), std::string::npos) << outcome.err;
  EXPECT_EQ(contexts().find("muster_"), std::string::npos);
  EXPECT_EQ(code_with(session), 0);
}

TEST_F(SharedServer, LogsOutASessionThatHasEndedAlready) {
  ASSERT_EQ(log_in(server_->first_token()).code, 0);
  ASSERT_EQ(muster({"token", "revoke", token_in(contexts()).substr(7, 12)}).code, 0);

  const Outcome outcome = muster({"logout"});

  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("logged out of")) << outcome.out;
}

TEST_F(SharedServer, KeepsTheSessionIfOnlyItsNewCertificateIsPinned) {
  ASSERT_EQ(log_in(server_->first_token()).code, 0);
  const std::string session = token_in(contexts());
  pin_another_certificate();
  EXPECT_EQ(muster({"list"}).code, 4);

  const Outcome wrong =
      muster({"login", server_->url(), "--name", "lab", "--fingerprint", std::string(64, '1')});
  const Outcome pinned =
      muster({"login", server_->url(), "--name", "lab", "--fingerprint", server_->fingerprint()});

  EXPECT_EQ(wrong.code, 4);
  EXPECT_NE(wrong.err.find("is not the pinned one"), std::string::npos) << wrong.err;
  EXPECT_EQ(pinned.code, 0) << pinned.err;
  EXPECT_TRUE(pinned.out.starts_with("kept the session")) << pinned.out;
  EXPECT_EQ(token_in(contexts()), session);
  EXPECT_EQ(muster({"list"}).code, 0);
}

TEST_F(SharedServer, EndsTheReplacedSessionAlthoughItsCertificateIsNew) {
  ASSERT_EQ(log_in(server_->first_token()).code, 0);
  const std::string first = token_in(contexts());
  pin_another_certificate();

  const Outcome again = log_in(server_->first_token());

  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.err, "");
  EXPECT_EQ(code_with(first), 4);
}

TEST_F(SharedServer, IsNotReplacedByALocalServerIfItIsUnreachable) {
  ASSERT_EQ(log_in(server_->first_token()).code, 0);
  server_.reset();
  ::setenv("MUSTER_STATE_DIR", (folder_ / "state").c_str(), 1);

  EXPECT_EQ(muster({"list"}).code, 5);

  EXPECT_FALSE(std::filesystem::exists(folder_ / "state"));
}

TEST_F(SharedServer, AsksForANewLoginIfItRefusesTheToken) {
  ASSERT_EQ(log_in(server_->first_token()).code, 0);
  const std::string id = token_in(contexts()).substr(7, 12);
  ASSERT_EQ(muster({"token", "revoke", id}).out, "revoked " + id + "\n");

  const Outcome outcome = muster({"list"});

  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.err, "muster: the token is not taken\n  log in again: muster login " +
                             server_->url() + "\n");
}

TEST_F(SharedServer, NeedsNoFileIfTheEnvironmentNamesIt) {
  ::setenv("MUSTER_SERVER", server_->url().c_str(), 1);
  ::setenv("MUSTER_TOKEN", server_->first_token().c_str(), 1);
  ::setenv("MUSTER_FINGERPRINT", server_->fingerprint().c_str(), 1);

  EXPECT_NE(muster({"whoami"}).out.find("CONTEXT  environment\n"), std::string::npos);

  EXPECT_FALSE(std::filesystem::exists(folder_ / "config"));
  EXPECT_EQ(muster({"logout"}).code, 2);
  EXPECT_EQ(muster({"project", "use", "default"}).code, 2);
}

TEST_F(SharedServer, HasItsOwnProjectInUse) {
  muster({"project", "create", "here"});
  ASSERT_EQ(muster({"project", "use", "here"}).code, 0);
  ASSERT_EQ(log_in(server_->first_token()).code, 0);
  muster({"project", "create", "there"});

  EXPECT_EQ(muster({"project", "use"}).out, "default\n");
  EXPECT_EQ(muster({"project", "use", "there"}).code, 0);

  EXPECT_EQ(muster({"project", "use"}).out, "there\n");
  EXPECT_EQ(muster({"project", "use", "--context", "local"}).out, "here\n");
  muster({"submit", "single", "a", "--", "true"});
  EXPECT_NE(muster({"list"}).out.find("a     there"), std::string::npos) << muster({"list"}).out;
}

TEST_F(SharedServer, ContextsAreUsedAndRemoved) {
  ASSERT_EQ(log_in(server_->first_token()).code, 0);

  EXPECT_EQ(muster({"context", "use", "local"}).code, 0);
  EXPECT_EQ(muster({"context"}).out, "local\n");
  EXPECT_NE(muster({"context", "list"}).out.find("local *  on this machine"), std::string::npos);
  EXPECT_EQ(muster({"context", "use", "lap"}).code, 3);
  ::setenv("MUSTER_CONTEXT", "lab", 1);
  EXPECT_EQ(muster({"context"}).out, "lab\n");
  EXPECT_NE(muster({"context", "use", "local"}).err.find("MUSTER_CONTEXT is set"),
            std::string::npos);
  EXPECT_EQ(muster({"context", "remove", "lab"}).out, "removed lab\n");
  EXPECT_EQ(muster({"list"}).code, 3);
  EXPECT_EQ(muster({"list", "--context", "local"}).code, 0);
}

TEST_F(SharedServer, ANameOfAnotherServersContextIsNotReused) {
  ASSERT_EQ(log_in(server_->first_token()).code, 0);

  const Outcome outcome = muster({"login", "https://other:1", "--name", "lab", "--fingerprint",
                                  std::string(64, '0'), "--token-file", "none"});

  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(muster({"context"}).out, "lab\n");
}

TEST_F(SharedServer, AnInvalidTokenIsNotSentAndNotPrinted) {
  const Outcome outcome = log_in("hunter2");

  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err.find("hunter2"), std::string::npos) << outcome.err;
  EXPECT_EQ(count_of("POST /v1/login"), 0);
}

TEST_F(SharedServer, AContextsFileReadableByOthersIsRefused) {
  ASSERT_EQ(log_in(server_->first_token()).code, 0);
  ::chmod((folder_ / "config/muster/contexts.json").c_str(), 0644);

  EXPECT_EQ(muster({"list"}).code, 4);

  EXPECT_EQ(muster({"help"}).code, 0);
  EXPECT_EQ(muster({"list", "--context", "local"}).code, 0);
}

TEST_F(SharedServer, UsersAreCreatedInvitedChangedAndDeleted) {
  ASSERT_EQ(log_in(server_->first_token()).code, 0);

  const Outcome created = muster({"user", "create", "ada", "--project", "default=member"});
  EXPECT_TRUE(created.out.starts_with("created ada\ninvitation  muster_")) << created.err;
  EXPECT_NE(created.out.find("muster login " + server_->url() + "\n"), std::string::npos);
  EXPECT_EQ(muster({"user", "create", "ada"}).code, 4);
  EXPECT_EQ(muster({"user", "set", "ada", "--role", "viewer", "--disable"}).out, "changed ada\n");
  EXPECT_EQ(muster({"user", "list"}).out,
            "NAME  ROLE    STATE     PROJECTS\n"
            "ada   viewer  disabled  default=member\n"
            "root  admin   active    -\n");
  EXPECT_NE(muster({"user", "get", "ada"}).out.find("PROJECTS\n  NAME     ROLE\n"),
            std::string::npos);
  EXPECT_NE(token_in(muster({"user", "invite", "ada"}).out), "");
  EXPECT_EQ(muster({"user", "delete", "ada"}).out, "deleted ada\n");
  EXPECT_EQ(muster({"user", "get", "ada"}).code, 3);
  EXPECT_EQ(muster({"user", "delete", "ada", "--ignore-missing"}).code, 0);
  EXPECT_EQ(muster({"audit", "--limit", "2"}).out,
            "TIME                  USER  FROM       ACTION       PROJECT  TARGET  CHANGE\n"
            "2023-11-14T22:13:20Z  root  127.0.0.1  user.delete  -        ada\n"
            "2023-11-14T22:13:20Z  root  127.0.0.1  user.set     -        ada\n");
}

TEST_F(SharedServer, AnInvitationIsValidForOneLogin) {
  ASSERT_EQ(log_in(server_->first_token()).code, 0);
  const std::string invitation = token_in(muster({"user", "create", "ada"}).out);

  const Outcome ada = log_in(invitation);
  EXPECT_EQ(ada.code, 0) << ada.err;
  EXPECT_NE(ada.out.find(" as ada until "), std::string::npos);

  const Outcome again = log_in(invitation);
  EXPECT_EQ(again.code, 4);
  EXPECT_NE(again.err.find("muster user invite NAME"), std::string::npos) << again.err;
  EXPECT_NE(muster({"whoami"}).out.find("USER     ada\n"), std::string::npos);
}

TEST_F(SharedServer, MembersOfAProjectAreGrantedAndRevoked) {
  ASSERT_EQ(log_in(server_->first_token()).code, 0);
  muster({"user", "create", "ada"});

  EXPECT_EQ(muster({"project", "grant", "default", "ada", "viewer"}).out,
            "ada is viewer of default\n");
  EXPECT_EQ(muster({"project", "members", "default"}).out, "USER  ROLE\nada   viewer\n");
  EXPECT_EQ(muster({"project", "revoke", "default", "ada"}).code, 0);
  EXPECT_EQ(muster({"project", "members", "default", "-o", "names"}).out, "");
  EXPECT_EQ(muster({"project", "grant", "default", "eve", "viewer"}).code, 3);
}

TEST_F(SharedServer, ATokenIsPrintedAloneOnStandardOutput) {
  ASSERT_EQ(log_in(server_->first_token()).code, 0);

  const Outcome created = muster({"token", "create", "--description", "nightly"});
  EXPECT_EQ(created.out, token_in(created.out) + "\n");
  EXPECT_NE(created.err.find("valid until 2024-02-12T22:13:20Z"), std::string::npos) << created.err;
  const Outcome json = muster({"token", "create", "-o", "json"});
  EXPECT_TRUE(json.out.starts_with("{\"token\":{\"id\":\"")) << json.out;
  EXPECT_EQ(json.err, "");
  EXPECT_NE(muster({"token", "list"}).out.find("nightly"), std::string::npos);
  muster({"user", "create", "ada"});
  EXPECT_NE(muster({"token", "list", "--all"}).out.find("  ada   invitation  "), std::string::npos);
}

TEST_F(SharedServer, ASecretIsReadFromAFileAndNeverListed) {
  ASSERT_EQ(log_in(server_->first_token()).code, 0);
  std::ofstream(folder_ / "key") << "sesame\n";

  const Outcome set = muster({"secret", "set", "KEY", "--from-file", folder_ / "key"});
  EXPECT_EQ(set.out, "set KEY of default\n") << set.err;
  const Outcome list = muster({"secret", "list"});
  EXPECT_EQ(list.out, "NAME  CHANGED               BY\nKEY   2023-11-14T22:13:20Z  root\n");
  // A file is used byte by byte.
  EXPECT_NE(muster({"audit", "-o", "json"}).out.find("KEY=sesame\\n\""), std::string::npos);
  EXPECT_EQ(muster({"secret", "list", "--project", "other", "-o", "names"}).out, "");
  EXPECT_EQ(muster({"secret", "delete", "KEY"}).out, "deleted KEY\n");
  EXPECT_EQ(muster({"secret", "delete", "KEY"}).code, 3);
  EXPECT_EQ(muster({"secret", "set", "KEY", "--from-file", "none"}).code, 2);
}

TEST_F(SharedServer, TheProjectOfAJobNameIsSentWithTheRequest) {
  muster({"submit", "single", "a", "--", "true"});

  muster({"get", "a", "--project", "b"});
  muster({"stop", "a", "--project", "b"});
  muster({"logs", "a", "--project", "b"});

  EXPECT_EQ(count_of("GET /v1/jobs/a of b"), 1);
  EXPECT_EQ(count_of("POST /v1/jobs/a/stop of b"), 1);
  EXPECT_EQ(count_of("GET /v1/jobs/a/logs of b"), 1);
}

}  // namespace

}  // namespace muster::cli
