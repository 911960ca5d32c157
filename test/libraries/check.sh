#!/usr/bin/env bash
# check.sh redis|mysql <program>: runs the program while a server of that kind listens on 127.0.0.1.
set -euo pipefail
# shellcheck source=examples/peers.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../examples/peers.sh"

PATH+=:/usr/sbin
port=$(free_port)
case $1 in
  redis)
    needs redis-server
    start_redis
    ;;
  mysql)
    needs mariadbd
    mkdir "$work/data"
    # Without tables of its own, and so without users: nobody is asked for a password.
    start mariadb mariadbd --no-defaults "--user=$(id -un)" "--datadir=$work/data" --skip-grant-tables \
      --bind-address=127.0.0.1 "--port=$port" "--socket=$work/socket" "--pid-file=$work/pid"
    wait_for_port "$port"
    ;;
esac
ASIO_WHEEL_SERVER_PORT=$port "$2" --color_output=no
