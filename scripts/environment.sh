# Sourced by scripts/palace and scripts/test from the checkout's root: makes or reuses the environment in .venv.
# Needs Python 3.11 or newer with venv and pip, and says the one command that brings what is missing.

bring() { # bring WHAT COMMAND...: say what is missing and the one command for it, then stop
    what=$1
    shift
    echo "$what is missing. This brings it:" >&2
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "    install Python 3.11 or newer with pip from https://www.python.org/downloads/ or your package manager" >&2
    elif [ "$(id -u)" = 0 ]; then
        echo "    apt-get install -y $*" >&2
    else
        echo "    sudo apt-get install -y $*" >&2
    fi
    exit 3
}

find_python() { # sets $python to the first Python that is new enough
    old=
    for python in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python; do
        command -v "$python" >/dev/null 2>&1 || continue
        if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            return 0
        fi
        old=$python
    done
    if [ -n "$old" ]; then
        bring "Python 3.11 or newer ($old is older)" python3.11 python3.11-venv
    fi
    bring "Python 3.11 or newer" python3 python3-venv
}

environment() { # environment user|dev: .venv with the package, and with what the checks need for dev
    wanted=$1
    stamp=.venv/vault-palace.stamp
    sum=$(cksum <pyproject.toml)
    if [ -x .venv/bin/python ] && [ -f "$stamp" ] && .venv/bin/python -c '' >/dev/null 2>&1; then
        read -r made <"$stamp" || made=
        # An environment for the checks also serves a user.
        if [ "$made" = "dev $sum" ] || [ "$made" = "$wanted $sum" ]; then
            return 0
        fi
    fi

    find_python
    if ! "$python" -c 'import venv, ensurepip' >/dev/null 2>&1; then
        case $python in
        python3.*) bring "The module venv of $python" "$python-venv" ;;
        *) bring "The module venv of $python" python3-venv ;;
        esac
    fi
    echo "Making the environment in .venv ($wanted; once, it takes a minute) ..."
    rm -f "$stamp"
    "$python" -m venv --clear .venv
    case $wanted in
    dev) target='.[dev]' ;;
    *) target=. ;;
    esac
    PIP_ROOT_USER_ACTION=ignore .venv/bin/python -m pip install --quiet --disable-pip-version-check \
        --editable "$target"
    # Compiled now, or the first start of the server would pay for it.
    .venv/bin/python -m compileall -q vault_palace || true
    echo "$wanted $sum" >"$stamp"
}
