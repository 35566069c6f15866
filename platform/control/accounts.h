// Users, tokens and secrets: the tables that say who a caller is and what it may do.
//
// Each change is committed, with its record in the audit log, before it returns. Which caller may
// ask for which change is the server's question, not this one's.
//
// On the EventLoop's thread; its parts must outlive it.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "access/audit.h"
#include "access/identity.h"
#include "access/secret_box.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "base/random.h"
#include "base/result.h"
#include "store/store.h"

namespace muster::control {

using base::Result;

/// What a new token may do and for how long.
struct TokenWish {
  std::string user;
  access::TokenKind kind = access::TokenKind::kApi;
  std::string description;
  access::Role ceiling = access::Role::kAdmin;
  std::vector<std::string> projects;
  std::optional<std::chrono::seconds> lifetime;  ///< nothing: for ever
};

/// A token that was made: the one moment in which its text is known.
struct IssuedToken {
  access::Token token;
  std::string text;
};

class Accounts {
 public:
  /// How long expired tokens are still listed.
  static constexpr std::chrono::hours kExpiredAreKept{24 * 30};

  struct Parts {
    base::EventLoop& loop;
    store::Store& store;
    const base::Clock& clock;
    base::RandomSource& random;
    const access::SecretBox& box;
  };
  struct Options {
    std::chrono::milliseconds uses_kept_after{60'000};
    std::chrono::milliseconds expired_looked_for{24 * 3'600'000};
  };

  explicit Accounts(Parts parts) : Accounts(parts, Options()) {}
  Accounts(Parts parts, Options options) : parts_(parts), options_(options) {}

  /// Takes over what the store holds. To be called once, before anything else.
  void load(std::vector<access::User> users, std::vector<access::Token> tokens,
            std::vector<access::Secret> secrets);

  // Who is it?

  /// The identity of a token's text. kRefused, with one and the same sentence whatever is wrong
  /// with it but for expiry and a disabled user. Notes its use, which is kept with the next change
  /// or within a minute. An invitation is an identity too: what it is good for is the server's
  /// business.
  Result<access::Identity> identify(std::string_view token_text, const std::string& address);

  // Users.

  std::vector<access::User> users() const;  ///< by name
  /// kNotFound with the nearest name.
  Result<access::User> user(const std::string& name) const;
  /// kInvalid with every fault; kConflict where the name is taken.
  Result<access::User> create_user(access::User user, const access::Actor& by);
  /// Replaces the one of this name; its date stays.
  Result<access::User> set_user(access::User user, const access::Actor& by);
  /// With all of its tokens.
  Result<void> remove_user(const std::string& name, const access::Actor& by);

  // Tokens.

  /// kNotFound for an unknown user; kInvalid for a lifetime that is none; kExhausted where the user
  /// has so many that no more are kept.
  Result<IssuedToken> issue(const TokenWish& wish, const access::Actor& by);
  /// A session for the user of an invitation (which is used up) or of any other token (which
  /// stays). Of a token for programs it makes another of these.
  Result<IssuedToken> log_in(const access::Identity& who, const std::string& description,
                             std::chrono::seconds lifetime, const access::Actor& by);
  /// Those of `user`, or all; newest first. Expired ones are kept for 30 days, for people to see.
  std::vector<access::Token> tokens(const std::optional<std::string>& user) const;
  Result<access::Token> token(const std::string& id) const;
  /// kNotFound. From the next request on it is not taken any more.
  Result<void> revoke(const std::string& id, const access::Actor& by);

  // The audit log, newest first.

  Result<std::vector<access::AuditRecord>> audit(const access::AuditQuery& query) const;

  // Secrets.

  std::vector<access::Secret> secrets(const std::string& project) const;  ///< by name, sealed
  /// New or changed. kInvalid: the name is none, or the value is empty or larger than 64 KiB.
  Result<access::Secret> set_secret(const std::string& project, const std::string& name,
                                    std::string_view value, const access::Actor& by);
  Result<void> remove_secret(const std::string& project, const std::string& name,
                             const access::Actor& by);
  /// For the start of a job. kNotFound; kRefused where it was sealed with another key.
  Result<std::string> open_secret(const std::string& project, const std::string& name) const;
  bool has_secret(const std::string& project, const std::string& name) const;
  /// Seals what the caller keeps by itself, under a name that is_secret_name() refuses. It opens
  /// for this project and name alone: kRefused.
  std::string seal(std::string_view value, const std::string& project, const std::string& name);
  Result<std::string> open(std::string_view sealed, const std::string& project,
                           const std::string& name) const;
  /// A project is about to be removed, and with it its secrets and the roles in it: puts that into
  /// its commit, and changes nothing yet.
  void forget_project(const std::string& project, store::Batch& batch) const;
  /// That commit has succeeded.
  void project_is_gone(const std::string& project);

 private:
  Result<void> keep(store::Batch batch);
  void note_use(access::Token& token, const std::string& address, base::Time now);
  void keep_uses_soon();
  void drop_long_expired();
  Result<void> check_room_for_token(const std::string& user) const;
  Result<IssuedToken> make(const TokenWish& wish, std::optional<base::Time> until,
                           const std::string& action, std::vector<std::string> gone,
                           const access::Actor& by);
  /// For whatever is wrong with a token: who tries some learns nothing of them.
  static base::Error not_valid();
  base::Error no_secret(const std::string& project, const std::string& name) const;
  access::AuditRecord record(const access::Actor& by, std::string action, std::string target,
                             std::vector<access::FieldChange> changes,
                             std::string project = {}) const;

  Parts parts_;
  Options options_;
  std::map<std::string, access::User> users_;
  std::map<std::string, access::Token> tokens_;  ///< by id
  std::map<store::SecretName, access::Secret> secrets_;
  std::set<std::string> used_;  ///< tokens whose last use is not kept yet
  base::EventLoop::Interest use_timer_;
  base::EventLoop::Interest expiry_timer_;
};

}  // namespace muster::control
