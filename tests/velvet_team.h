// A TeamServer with jobs, users and tokens of every kind, for tests of access rights.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>

#include "base/files.h"
#include "base/test_folder.h"
#include "control/arrays.h"
#include "control/schedules.h"
#include "control/sweeps.h"
#include "team_server.h"
#include "workspace/manifest.h"

namespace muster::server {

/// A job of velvet, whose values are words of kVelvetWords.
inline job::JobSpec velvet_spec(const std::string& name, int gpus) {
  job::JobSpec spec = single_job(name, "velvet", gpus);
  spec.command = {"azurite"};
  spec.environment = {{"opal", "sardonyx"}};
  spec.folder = "/porphyry";
  return spec;
}

inline sweep::SweepSpec velvet_sweep(const std::string& name) {
  return {.job = velvet_spec(name, 1),
          .parameters = {{"opal", {.values = {"sardonyx", "chalcedony"}}}},
          .method = sweep::Method::kGrid,
          .metric = "azurite"};
}

/// An array whose members are suspended.
inline job::JobSpec velvet_array(const std::string& name) {
  job::JobSpec spec = velvet_spec(name, 0);
  spec.array.indexes = "0-1";
  spec.held = true;
  return spec;
}

/// A schedule whose jobs request 3 GPUs, which are in use.
inline job::ScheduleSpec velvet_schedule(const std::string& name) {
  return {.name = name, .project = "velvet", .cron = "0 3 29 2 *", .job = velvet_spec("", 3)};
}

/// Velvet has a running job (quicksilver), a waiting job and an ended job. A job of green was evicted
/// for quicksilver and waits.
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
    add_array();
    add_schedule();
    add_sweep();
    add_subscription();
    EXPECT_TRUE(base::write_new_file(artifacts_ / "tourmaline", "azurite"));
    engine().artifacts = artifacts_.path();
    issue_tokens();
  }

  /// The token of a kind of caller. `caller` is a role or a kind of token. Roles: stranger (a
  /// member of green only); viewer, member, admin (of velvet); server viewer, server admin. Kinds
  /// of token:
  ///
  ///   nobody                      without a token
  ///   no token                    a text that is not a token
  ///   forged                      the server admin's token with another last letter
  ///   invited                     an invitation
  ///   reading                     the read-only token of an admin of velvet
  ///   elsewhere                   a token of that admin for green only
  ///   disabled, revoked, expired  a token that was valid
  const std::string& token_of(const std::string& caller) const { return tokens_.at(caller); }
  const std::string& amber_token_id() const { return amber_token_id_; }
  std::string subscription() const { return notifications().subscriptions("velvet").front().id; }

  /// A tree without files, which velvet has.
  static std::string manifest() { return workspace::encode({}); }
  static std::string tree() { return workspace::tree_id(manifest()); }

  /// Like TeamServer::ask(). Stores the tree before a request for it.
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
    add_user("sam", {{"green", access::Role::kMember}});
    add_user("beryl", {{"velvet", access::Role::kViewer}});
    add_user("hyacinth", {{"velvet", access::Role::kMember}, {"green", access::Role::kViewer}});
    add_user("jasper", {{"velvet", access::Role::kAdmin}, {"green", access::Role::kViewer}});
    add_user("amber", {{"velvet", access::Role::kMember}});
    add_user("disabled-amber", {{"velvet", access::Role::kAdmin}}, access::Role::kAdmin);
    add_user("vera", {}, access::Role::kViewer);
    add_user("rudi", {}, access::Role::kAdmin);
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

  void add_array() {
    EXPECT_TRUE(controller().submit_array(velvet_array("malachite"), "", {.user = "hyacinth"}));
  }

  void add_schedule() {
    EXPECT_TRUE(controller().schedules().create(velvet_schedule("peridot"), {.user = "hyacinth"}));
  }

  /// Adds a sweep that is paused, so that it has no jobs.
  void add_sweep() {
    control::Sweeps& sweeps = controller().sweeps();
    const auto made = sweeps.create(velvet_sweep("amethyst"), {.user = "hyacinth"});
    ASSERT_TRUE(made) << made.error().to_string();
    EXPECT_TRUE(sweeps.set_paused(made->summary.id, true, {}));
  }

  void issue_tokens() {
    for (const auto& [caller, user] :
         std::map<std::string, std::string>{{"stranger", "sam"},
                                            {"viewer", "beryl"},
                                            {"member", "hyacinth"},
                                            {"admin", "jasper"},
                                            {"server viewer", "vera"},
                                            {"server admin", "rudi"}}) {
      tokens_[caller] = token({.user = user, .kind = access::TokenKind::kSession});
    }
    tokens_["nobody"] = "";
    tokens_["no token"] = "chrysoprase";
    tokens_["forged"] = tokens_["server admin"];
    tokens_["forged"].back() = tokens_["forged"].back() == 'a' ? 'b' : 'a';
    tokens_["invited"] = token({.user = "rudi", .kind = access::TokenKind::kInvitation});
    tokens_["reading"] = token({.user = "jasper", .ceiling = access::Role::kViewer});
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

  base::TestFolder artifacts_;  ///< the artifacts of every job
  std::map<std::string, std::string> tokens_;
  std::string amber_token_id_;
};

}  // namespace muster::server
