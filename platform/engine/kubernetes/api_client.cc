#include "engine/kubernetes/api_client.h"

#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"
#include "base/text.h"
#include "engine/kubernetes/api_paths.h"
#include "engine/kubernetes/api_session.h"
#include "http/message.h"

namespace muster::engine::kubernetes {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

/// A list that expires again and again is too long for its pages.
constexpr int kMostListAttempts = 4;

template <class Value>
using Then = ApiClient::Then<Value>;

Error malformed(const ApiSession& session, const std::string& doing) {
  return {.code = ErrorCode::kInternal,
          .what = doing + ": " + session.name() + " answered with something that is not JSON",
          .advice = "check that the address is that of an API server"};
}

/// Passes the answer on as an object.
ApiSession::Answered as_object(const ApiSession& session, std::string doing, Then<Json> then) {
  return [&session, doing = std::move(doing),
          then = std::move(then)](const Result<http::Response>& answer) {
    if (!answer) return then(answer.error());
    Json object = base::parse_json(answer->body);
    if (!object.is_object()) return then(malformed(session, doing));
    then(std::move(object));
  };
}

ApiSession::Answered as_done(ApiClient::Done done) {
  return [done = std::move(done)](const Result<http::Response>& answer) {
    answer ? done({}) : done(answer.error());
  };
}

Json delete_body(const DeleteOptions& options) {
  Json body{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
  if (options.grace) body["gracePeriodSeconds"] = options.grace->count();
  if (!options.propagation.empty()) body["propagationPolicy"] = options.propagation;
  if (!options.uid.empty()) body["preconditions"]["uid"] = options.uid;
  if (!options.resource_version.empty()) {
    body["preconditions"]["resourceVersion"] = options.resource_version;
  }
  return body;
}

/// A member of a member as text; empty if it is missing.
std::string text_at(const Json& object, const char* outer, const char* inner) {
  const auto found = object.find(outer);
  if (found == object.end() || !found->is_object()) return "";
  const auto text = found->find(inner);
  return text != found->end() && text->is_string() ? text->get<std::string>() : "";
}

std::string text_in(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// "37", "37+"
int leading_number(const std::string& text) {
  int number = 0;
  for (const char letter : text) {
    if (std::isdigit(static_cast<unsigned char>(letter)) == 0 || number > 10'000) break;
    number = number * 10 + (letter - '0');
  }
  return number;
}

/// JSON as text. kInvalid: a text in it is not UTF-8.
Result<std::string> written(const Json& object, const std::string& doing) {
  try {
    return object.dump();
  } catch (const Json::exception&) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = doing + ": a text in the object is not UTF-8",
                 .advice = "Kubernetes takes only UTF-8: check names, arguments and variables"};
  }
}

/// Fetches the pages of a list, one after the other.
class Pages : public std::enable_shared_from_this<Pages> {
 public:
  Pages(std::shared_ptr<ApiSession> session, Selection which, ApiClient::OnPage on_page,
        Then<std::string> then)
      : session_(std::move(session)),
        which_(std::move(which)),
        doing_("cannot list " + described(which_)),
        on_page_(std::move(on_page)),
        then_(std::move(then)) {}

  void begin() {
    http::Query query{{"limit", std::to_string(session_->options().page)}};
    if (!which_.labels.empty()) query["labelSelector"] = which_.labels;
    if (!which_.fields.empty()) query["fieldSelector"] = which_.fields;
    if (!continue_.empty()) query["continue"] = continue_;
    call_ = session_->ask({.verb = "list",
                           .resource = std::string(which_.resource.plural),
                           .doing = doing_,
                           .target = target_of(which_.resource, which_.space, "", query)},
                          [this](const Result<http::Response>& answer) { on_answer(answer); });
  }

 private:
  void on_answer(const Result<http::Response>& answer) {
    const auto self = shared_from_this();
    const bool is_expired = !answer && !continue_.empty() &&
                            refusal_of(answer.error()) != nullptr &&
                            refusal_of(answer.error())->status == 410;
    if (is_expired && ++attempts_ < kMostListAttempts) {
      continue_.clear();
      is_first_ = true;
      return begin();
    }
    if (!answer) return finish(answer.error());
    Json page = base::parse_json(answer->body);
    if (!page.is_object()) return finish(malformed(*session_, doing_));
    continue_ = text_at(page, "metadata", "continue");
    const std::string version = text_at(page, "metadata", "resourceVersion");
    Json items = Json::array();
    if (const auto found = page.find("items"); found != page.end() && found->is_array()) {
      items = std::move(*found);
    }
    on_page_(std::move(items), std::exchange(is_first_, false));
    if (!then_) return;  // dropped meanwhile
    if (!continue_.empty()) return begin();
    finish(version);
  }

  void finish(Result<std::string> result) {
    if (const auto then = std::exchange(then_, nullptr)) then(std::move(result));
  }

 public:
  void drop() {
    then_ = nullptr;
    call_.reset();
  }

 private:
  std::shared_ptr<ApiSession> session_;
  Selection which_;
  std::string doing_;
  ApiClient::OnPage on_page_;
  Then<std::string> then_;
  std::string continue_;
  bool is_first_ = true;
  int attempts_ = 0;
  Call call_;
};

}  // namespace

ApiClient::ApiClient(base::EventLoop& loop, std::unique_ptr<Access> access, ApiOptions options)
    : session_(std::make_shared<ApiSession>(loop, std::move(access), std::move(options))) {}

ApiClient::~ApiClient() {
  session_->close();
}

const AccessFacts& ApiClient::facts() const {
  return session_->facts();
}

const ApiOptions& ApiClient::options() const {
  return session_->options();
}

const CallCounts& ApiClient::counts() const {
  return session_->counts();
}

size_t ApiClient::queued() const {
  return session_->queued();
}

size_t ApiClient::in_flight() const {
  return session_->in_flight();
}

// --- objects

Call ApiClient::get(ObjectName name, Then<Json> then) {
  const std::string doing = "cannot get " + described(name);
  return session_->ask({.verb = "get",
                        .resource = std::string(name.resource.plural),
                        .doing = doing,
                        .target = target_of(name.resource, name.space, name.name)},
                       as_object(*session_, doing, std::move(then)));
}

Call ApiClient::list(Selection which, Then<Listed> then) {
  const auto listed = std::make_shared<Listed>();
  return list_pages(
      std::move(which),
      [listed](Json items, bool is_first) {
        if (is_first) listed->objects.clear();
        for (Json& item : items) listed->objects.push_back(std::move(item));
      },
      [listed, then = std::move(then)](Result<std::string> version) {
        if (!version) return then(std::move(version).error());
        listed->resource_version = *std::move(version);
        then(std::move(*listed));
      });
}

Call ApiClient::list_pages(Selection which, OnPage on_page, Then<std::string> then) {
  const auto pages =
      std::make_shared<Pages>(session_, std::move(which), std::move(on_page), std::move(then));
  pages->begin();
  return {pages.get(), [pages](void*) { pages->drop(); }};
}

Call ApiClient::create(Resource resource, std::string space, const Json& object, Then<Json> then) {
  const std::string doing =
      "cannot create " +
      described(
          {.resource = resource, .space = space, .name = text_at(object, "metadata", "name")});
  auto body = written(object, doing);
  if (!body) return session_->fail_later(std::move(body).error(), then);
  return session_->ask(
      {.verb = "create",
       .resource = std::string(resource.plural),
       .doing = doing,
       .method = "POST",
       .target = target_of(resource, space, "", {{"fieldManager", options().field_manager}}),
       .body = *std::move(body),
       .is_safe = false},
      as_object(*session_, doing, std::move(then)));
}

Call ApiClient::apply(ObjectName name, const Json& object, const ApplyOptions& options,
                      Then<Json> then) {
  const std::string doing = "cannot apply " + described(name);
  auto body = written(object, doing);
  if (!body) return session_->fail_later(std::move(body).error(), then);
  const http::Query query{{"fieldManager", this->options().field_manager},
                          {"force", options.force ? "true" : "false"}};
  return session_->ask(
      {.verb = "apply",
       .resource = with_subresource(name.resource, options.subresource),
       .doing = doing,
       .method = "PATCH",
       .target = target_of(name.resource, name.space, name.name, query, options.subresource),
       .body = *std::move(body),
       .content_type = "application/apply-patch+yaml"},
      as_object(*session_, doing, std::move(then)));
}

Call ApiClient::patch(ObjectName name, PatchType type, const Json& changes, Then<Json> then,
                      std::string subresource) {
  const std::string doing = "cannot patch " + described(name);
  auto body = written(changes, doing);
  if (!body) return session_->fail_later(std::move(body).error(), then);
  const bool is_json = type == PatchType::kJson;
  const std::string content_type = is_json ? "application/json-patch+json"
                                   : type == PatchType::kMerge
                                       ? "application/merge-patch+json"
                                       : "application/strategic-merge-patch+json";
  return session_->ask(
      {.verb = "patch",
       .resource = with_subresource(name.resource, subresource),
       .doing = doing,
       .method = "PATCH",
       .target = target_of(name.resource, name.space, name.name,
                           {{"fieldManager", options().field_manager}}, subresource),
       .body = *std::move(body),
       .content_type = content_type,
       .is_safe = !is_json},
      as_object(*session_, doing, std::move(then)));
}

Call ApiClient::remove(ObjectName name, const DeleteOptions& options, Done done) {
  return session_->ask({.verb = "delete",
                        .resource = std::string(name.resource.plural),
                        .doing = "cannot delete " + described(name),
                        .method = "DELETE",
                        .target = target_of(name.resource, name.space, name.name),
                        .body = base::json_text(delete_body(options))},
                       [done = std::move(done)](const Result<http::Response>& answer) {
                         const bool is_gone = !answer && refusal_of(answer.error()) != nullptr &&
                                              refusal_of(answer.error())->status == 404;
                         if (answer || is_gone) return done({});
                         done(answer.error());
                       });
}

Call ApiClient::remove_all(Selection which, const DeleteOptions& options, Done done) {
  http::Query query;
  if (!which.labels.empty()) query["labelSelector"] = which.labels;
  if (!which.fields.empty()) query["fieldSelector"] = which.fields;
  return session_->ask({.verb = "deletecollection",
                        .resource = std::string(which.resource.plural),
                        .doing = "cannot delete " + described(which),
                        .method = "DELETE",
                        .target = target_of(which.resource, which.space, "", query),
                        .body = base::json_text(delete_body(options))},
                       as_done(std::move(done)));
}

// --- pods

Call ApiClient::bind(const std::string& space, const std::string& pod, const std::string& uid,
                     const std::string& node, Done done) {
  Json metadata{{"name", pod}, {"namespace", space}};
  if (!uid.empty()) metadata["uid"] = uid;
  const Json binding{{"apiVersion", "v1"},
                     {"kind", "Binding"},
                     {"metadata", std::move(metadata)},
                     {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}}}};
  return session_->ask(
      {.verb = "create",
       .resource = "pods/binding",
       .doing = "cannot bind " + described({.resource = kPods, .space = space, .name = pod}) +
                " to node " + base::in_quotes(node),
       .method = "POST",
       .target = target_of(kPods, space, pod, {}, "binding"),
       .body = base::json_text(binding),
       .is_safe = false},
      as_done(std::move(done)));
}

Call ApiClient::evict(const std::string& space, const std::string& pod,
                      const DeleteOptions& options, Done done) {
  const Json eviction{{"apiVersion", "policy/v1"},
                      {"kind", "Eviction"},
                      {"metadata", {{"name", pod}, {"namespace", space}}},
                      {"deleteOptions", delete_body(options)}};
  return session_->ask(
      {.verb = "create",
       .resource = "pods/eviction",
       .doing = "cannot evict " + described({.resource = kPods, .space = space, .name = pod}),
       .method = "POST",
       .target = target_of(kPods, space, pod, {}, "eviction"),
       .body = base::json_text(eviction),
       .is_safe = !options.uid.empty()},
      as_done(std::move(done)));
}

Call ApiClient::logs(const std::string& space, const std::string& pod, const LogOptions& options,
                     http::OnPiece on_piece, Done done) {
  http::Query query;
  if (!options.container.empty()) query["container"] = options.container;
  if (options.follow) query["follow"] = "true";
  if (options.previous) query["previous"] = "true";
  if (options.tail_lines) query["tailLines"] = std::to_string(*options.tail_lines);
  if (options.limit_bytes) query["limitBytes"] = std::to_string(*options.limit_bytes);
  if (options.timestamps) query["timestamps"] = "true";
  return session_->ask({.verb = "get",
                        .resource = "pods/log",
                        .doing = "cannot read the log of " +
                                 described({.resource = kPods, .space = space, .name = pod}),
                        .target = target_of(kPods, space, pod, query, "log"),
                        .repeats = false,
                        .is_long = options.follow,
                        .on_piece = std::move(on_piece)},
                       as_done(std::move(done)));
}

// --- the server

Call ApiClient::version(Then<ServerVersion> then) {
  const std::string doing = "cannot get the version of Kubernetes";
  return session_->ask(
      {.verb = "get", .resource = "/version", .doing = doing, .target = "/version"},
      as_object(*session_, doing, [then = std::move(then)](const Result<Json>& object) {
        if (!object) return then(object.error());
        then(ServerVersion{.major = leading_number(text_in(*object, "major")),
                           .minor = leading_number(text_in(*object, "minor")),
                           .git_version = text_in(*object, "gitVersion"),
                           .platform = text_in(*object, "platform")});
      }));
}

Call ApiClient::may_i(const AccessQuestion& question, Then<AccessAnswer> then) {
  const std::string doing = "cannot check rights";
  Json attributes{{"verb", question.verb},
                  {"group", question.resource.group},
                  {"version", question.resource.version},
                  {"resource", question.resource.plural}};
  if (!question.subresource.empty()) attributes["subresource"] = question.subresource;
  if (!question.space.empty()) attributes["namespace"] = question.space;
  if (!question.name.empty()) attributes["name"] = question.name;
  const Json review{{"apiVersion", "authorization.k8s.io/v1"},
                    {"kind", "SelfSubjectAccessReview"},
                    {"spec", {{"resourceAttributes", std::move(attributes)}}}};
  static constexpr Resource kReviews{.group = "authorization.k8s.io",
                                     .plural = "selfsubjectaccessreviews",
                                     .is_namespaced = false};
  return session_->ask(
      {.verb = "create",
       .resource = std::string(kReviews.plural),
       .doing = doing,
       .method = "POST",
       .target = target_of(kReviews, "", ""),
       .body = base::json_text(review)},
      as_object(*session_, doing, [then = std::move(then)](const Result<Json>& object) {
        if (!object) return then(object.error());
        const auto status = object->find("status");
        const bool allowed = status != object->end() && status->is_object() &&
                             status->value("allowed", Json()) == true;
        then(AccessAnswer{.allowed = allowed, .reason = text_at(*object, "status", "reason")});
      }));
}

Call ApiClient::get_path(std::string path, Then<std::string> then) {
  return session_->ask(
      {.verb = "get", .resource = path, .doing = "cannot get " + path, .target = path},
      [then = std::move(then)](Result<http::Response> answer) {
        if (!answer) return then(std::move(answer).error());
        then(std::move(answer->body));
      });
}

}  // namespace muster::engine::kubernetes
