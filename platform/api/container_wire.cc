// What a spec says of images and of the containers that run them. What has its default is not told.
#include "api/spec_wire.h"
#include "job/capability.h"

namespace muster::api {

using job::ContainerSpec;
using job::JobSpec;
using job::LaunchBy;
using job::PullPolicy;
using job::RegistryLogin;

namespace {

void write_container_if_any(JsonWriter& json, const ContainerSpec& container) {
  if (container == ContainerSpec()) return;
  json.key("container").open('{');
  if (container.pull != ContainerSpec().pull) json.key("pull").text(to_string(container.pull));
  if (container.writable_root) json.key("writable_root").flag(true);
  if (container.new_privileges) json.key("new_privileges").flag(true);
  if (!container.capabilities.empty()) json.key("capabilities").texts(container.capabilities);
  if (container.shm_bytes != 0) json.key("shm_bytes").number(container.shm_bytes);
  json.close('}');
}

void read_container(Fields& fields, ContainerSpec& container) {
  fields.choose("pull", container.pull,
                {PullPolicy::kIfMissing, PullPolicy::kAlways, PullPolicy::kNever}, job::to_string);
  fields.read("writable_root", container.writable_root);
  fields.read("new_privileges", container.new_privileges);
  fields.read("capabilities", container.capabilities);
  container.capabilities = job::capabilities_of(container.capabilities);
  fields.read("shm_bytes", container.shm_bytes);
}

}  // namespace

void write_login_if_any(JsonWriter& json, const RegistryLogin& login) {
  if (login == RegistryLogin()) return;
  json.key("registry").open('{');
  if (!login.server.empty()) json.key("server").text(login.server);
  json.key("username").text(login.username);
  json.key("secret").text(login.secret);
  json.close('}');
}

void read_login(Fields& fields, RegistryLogin& login) {
  fields.object("registry", [&](Fields& inner) {
    inner.read("server", login.server);
    inner.read("username", login.username, Need::kRequired);
    inner.read("secret", login.secret, Need::kRequired);
  });
}

void write_containers(JsonWriter& json, const JobSpec& spec) {
  if (!spec.user.empty()) json.key("user").text(spec.user);
  write_login_if_any(json, spec.registry);
  write_container_if_any(json, spec.container);
  if (spec.launch != LaunchBy::kAuto) json.key("launch").text(to_string(spec.launch));
  if (!spec.replaces_entrypoint) json.key("replaces_entrypoint").flag(false);
}

void read_containers(Fields& fields, JobSpec& spec) {
  fields.read("user", spec.user);
  read_login(fields, spec.registry);
  fields.object("container", [&](Fields& inner) { read_container(inner, spec.container); });
  fields.choose("launch", spec.launch,
                {LaunchBy::kAuto, LaunchBy::kSsh, LaunchBy::kAgent, LaunchBy::kSrun},
                job::to_string);
  fields.read("replaces_entrypoint", spec.replaces_entrypoint);
}

}  // namespace muster::api
