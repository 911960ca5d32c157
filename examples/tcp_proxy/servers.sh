# The servers behind tcp_proxy, for check.sh and measure.sh; to be sourced after peers.sh.
# shellcheck shell=bash disable=SC2034,SC2154

# start_redis <backlog>: process $redis, on $redis_port.
start_redis() {
  redis_port=$(free_port)
  start redis redis-server --port "$redis_port" --bind 127.0.0.1 --save '' --dir "$work" \
    --tcp-backlog "$1"
  redis=$started
  wait_for_port "$redis_port"
}

# start_nginx: on $nginx_port, with two files: small and large. A single process: a worker would
# outlive a master that is killed.
start_nginx() {
  nginx_port=$(free_port)
  mkdir -p "$work/html"
  head -c 500 /dev/zero >"$work/html/small"
  head -c 20000000 /dev/urandom >"$work/html/large"
  cat >"$work/nginx.conf" <<END
daemon off;
master_process off;
pid $work/nginx.pid;
error_log $work/nginx_error.log;
events { worker_connections 4096; }
http {
  access_log off;
  keepalive_requests 1000000;
  server {
    listen 127.0.0.1:$nginx_port;
    root $work/html;
  }
}
END
  chmod 755 "$work"
  start nginx nginx -c "$work/nginx.conf" -e "$work/nginx_error.log"
  wait_for_port "$nginx_port"
}
